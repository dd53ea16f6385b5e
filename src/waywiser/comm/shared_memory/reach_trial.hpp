#pragma once

#include <string>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser {

// What this process reaches of another one's memory, by trial: a token there was read by that very means.
struct Reach {
  bool files = false;   // memory files, as mailboxes, heaps and UCX share them
  bool copies = false;  // copies by system calls between two processes
  std::string why_not;  // of files
};

// Memory of this rank with which others try what they reach. It must live until all have tried.
class ReachTrial {
 public:
  ReachTrial();
  // For the introduction; empty: this process can share nothing.
  const std::string& offer() const noexcept { return offer_; }
  static Reach of(const Introduction& other);

 private:
  Descriptor file_;
  Mapping memory_;
  std::string offer_;
};

}  // namespace waywiser
