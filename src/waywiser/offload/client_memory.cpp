#include "waywiser/offload/client_memory.hpp"

#include <unistd.h>

#include <string>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_memories = 1000;

std::string memory_text(std::uint64_t number) { return "memory " + std::to_string(number) + " of the client"; }

}  // namespace

Bytes pinned_file_bytes(Bytes memory) { return round_up_to_pages(memory) + page_size(); }

void ClientMemory::add(std::uint64_t number, Descriptor file, Bytes bytes, std::string_view secret) {
  if (memories_.contains(number) || memories_.size() == most_memories)
    throw Error(ErrorKind::invalid_input,
                "there is " + memory_text(number) + " already, or there are " + std::to_string(most_memories));
  if (bytes > most_ - used_)
    throw Error(ErrorKind::device, memory_text(number) + " has " + std::to_string(bytes) +
                                       " bytes more than the others, above this server's limit of " +
                                       std::to_string(most_));
  const Bytes whole = pinned_file_bytes(bytes);
  check_shared_file(file, whole, memory_text(number));
  std::string found(secret.size(), ' ');
  const auto at = static_cast<off_t>(whole - page_size());
  if (::pread(file.number(), found.data(), found.size(), at) != static_cast<ssize_t>(found.size()) || found != secret)
    throw Error(ErrorKind::device, memory_text(number) + " does not have its secret");
  MemoryHandle handle;
  handle.place = platform_.nearest_host(gpu_.index);
  handle.bytes = bytes;
  handle.descriptor = std::move(file);
  memories_.emplace(number, platform_.open_memory_for(handle, gpu_));
  used_ += bytes;
}

Region ClientMemory::find(std::uint64_t number, Bytes at, Bytes bytes) const {
  const auto found = memories_.find(number);
  if (found == memories_.end()) throw Error(ErrorKind::invalid_input, "there is no " + memory_text(number));
  return found->second.region().slice(at, bytes);
}

bool ClientMemory::forget(std::uint64_t number) {
  const auto found = memories_.find(number);
  if (found == memories_.end()) return false;
  used_ -= found->second.region().bytes;
  memories_.erase(found);
  return true;
}

}  // namespace waywiser
