#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Memory that a client gives to a worker on its machine is a file of these bytes: the memory, and from the next page on
// the secret that the client tells with it. So no other process's file is taken for it.
Bytes pinned_file_bytes(Bytes memory);

// Memory of a client on the worker's machine: mapped here too, and page-locked for the GPU if it is one of CUDA.
class ClientMemory {
 public:
  ClientMemory(Platform& platform, Place gpu, Bytes most) : platform_(platform), gpu_(gpu), most_(most) {}

  // Throws invalid_input for a number that is in use; device if the file is invalid, has another secret, or all
  // memories have more bytes than the client's arrays may have.
  void add(std::uint64_t number, Descriptor file, Bytes bytes, std::string_view secret);
  // Throws invalid_input.
  Region find(std::uint64_t number, Bytes at, Bytes bytes) const;
  // False: there is none.
  bool forget(std::uint64_t number);

 private:
  Platform& platform_;
  const Place gpu_;
  const Bytes most_;
  Bytes used_ = 0;
  std::map<std::uint64_t, Memory> memories_;
};

}  // namespace waywiser
