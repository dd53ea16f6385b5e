#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// Tells whoever of this user asks what a rank is doing: a socket in the runtime folder. Every connection gets one line
// of JSON. Without a runtime folder there is none, and nobody can ask.
class StatusSocket {
 public:
  StatusSocket(int rank, std::function<std::string()> describe);
  StatusSocket(const StatusSocket&) = delete;
  StatusSocket& operator=(const StatusSocket&) = delete;
  ~StatusSocket();

  int number() const noexcept { return listener_.number(); }  // below 0: none
  // All who have asked. Waits for nobody.
  void answer();

 private:
  std::filesystem::path path_;
  Descriptor listener_;
  std::function<std::string()> describe_;
};

}  // namespace waywiser
