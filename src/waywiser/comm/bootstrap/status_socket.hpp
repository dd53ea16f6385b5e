#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// A socket in the runtime folder that tells this user's programs what a rank is doing. Every connection gets one line
// of JSON. Without a runtime folder there is no socket.
class StatusSocket {
 public:
  StatusSocket(int rank, std::function<std::string()> describe);
  StatusSocket(const StatusSocket&) = delete;
  StatusSocket& operator=(const StatusSocket&) = delete;
  ~StatusSocket() { close(); }

  int number() const noexcept { return listener_.number(); }  // below 0: none
  // Answers all waiting connections without blocking.
  void answer();
  // Nobody is answered any more.
  void close() noexcept;

 private:
  std::filesystem::path path_;
  Descriptor listener_;
  std::function<std::string()> describe_;
};

}  // namespace waywiser
