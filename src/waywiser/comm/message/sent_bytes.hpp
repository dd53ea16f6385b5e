#pragma once

#include <atomic>
#include <map>
#include <string>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Bytes that one mechanism has sent. The session's thread adds, any thread reads.
class SentBytes {
 public:
  void add(Bytes more) noexcept { count_.store(get() + more, std::memory_order_relaxed); }
  Bytes get() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Bytes> count_ = 0;
};

// By the name of the mechanism.
using SentByMechanism = std::map<std::string, Bytes>;

}  // namespace waywiser
