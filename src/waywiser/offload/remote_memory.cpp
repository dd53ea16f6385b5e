#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "waywiser/base/crypto.hpp"
#include "waywiser/device/mapping.hpp"
#include "waywiser/offload/client_memory.hpp"
#include "waywiser/offload/remote_driver.hpp"
#include "waywiser/offload/remote_gpu_state.hpp"

namespace waywiser {
namespace {

constexpr std::string_view what_pinned = "pinned memory";
constexpr int exit_code_of_held_memory = 70;

void* anonymous_pages(Bytes bytes) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

// The file stays open: the worker opens it by its number.
struct [[gnu::visibility("hidden")]] PinnedMemory::Block {
  explicit Block(Bytes memory)
      : bytes(memory),
        file(create_shared_file(pinned_file_bytes(memory), what_pinned)),
        mapping(Mapping::of_file(file, pinned_file_bytes(memory), true, what_pinned)),
        spare(anonymous_pages(mapping.length())) {
    if (spare == MAP_FAILED)
      throw Error(ErrorKind::device, std::string(what_pinned) + ": no room for " + format_bytes(mapping.length()) +
                                         " bytes to replace it: " + last_system_error());
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { give_spare_back(); }

  Region region() const { return {mapping.data(), bytes, host(0)}; }
  std::byte* secret() const { return mapping.data() + mapping.length() - page_size(); }
  // The server cannot use the memory.
  void give_spare_back() noexcept {
    if (spare != MAP_FAILED) ::munmap(spare, mapping.length());
    spare = MAP_FAILED;
  }
  // From now on the pages are this process's only, with what is in them: they were set aside before.
  void part() noexcept {
    if (spare == MAP_FAILED) return;
    std::memcpy(spare, mapping.data(), mapping.length());
    if (::mremap(spare, mapping.length(), mapping.length(), MREMAP_MAYMOVE | MREMAP_FIXED, mapping.data()) ==
        MAP_FAILED)
      end_process();
    spare = MAP_FAILED;
    parted = true;
  }

  const Bytes bytes;
  Descriptor file;
  Mapping mapping;
  void* spare;               // as many pages of this process, which are not touched before they are needed
  std::uint64_t number = 0;  // at the server; 0: it cannot use the memory
  bool locked = false, parted = false;

 private:
  // As a group does whose memory others can still reach.
  [[noreturn]] static void end_process() noexcept {
    const std::string line =
        "waywiser: this process ends: a server can still write to pinned memory, whose pages the "
        "system does not replace: " +
        last_system_error() + "\n";
    static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
    ::_exit(exit_code_of_held_memory);
  }
};

Region PinnedMemory::region() const noexcept { return block_ ? block_->region() : Region{}; }

std::string_view PinnedMemory::by() const noexcept {
  if (!block_) return "";
  if (block_->number != 0 && !block_->parted) return "server";
  return block_->locked && !block_->parted ? "lock" : "";
}

PinnedMemory RemoteGpu::pinned(Bytes bytes) {
  const auto alone = held().alone("pinned");
  held().answer("pinned");  // reports what has failed before
  held().forget_pinned();
  const auto block = std::make_shared<PinnedMemory::Block>(bytes);
  std::array<std::byte, digits_of_secret / 2> random{};
  fill_with_random(random);
  const requests::Pin pin{++held().last, bytes, static_cast<std::uint64_t>(block->file.number()), hexadecimal(random)};
  std::memcpy(block->secret(), pin.secret.data(), pin.secret.size());
  if (held().answer("pinned", pin).placed) {
    block->number = pin.memory;
  } else {
    block->give_spare_back();
    block->locked = ::mlock(block->mapping.data(), block->mapping.length()) == 0;
  }
  const std::lock_guard lock(held().pinned_mutex);
  held().pinned[block->region().data + bytes] = {block->number, block};
  return PinnedMemory(block);
}

std::string_view RemoteGpu::pinned_by(const void* address) const {
  const std::lock_guard lock(held().pinned_mutex);
  const auto found = held().pinned.upper_bound(static_cast<const std::byte*>(address));
  if (found == held().pinned.end()) return "";
  const auto block = found->second.second.lock();
  return block && address >= block->region().data ? PinnedMemory(block).by() : "";
}

void RemoteGpu::State::forget_pinned() {
  std::vector<std::uint64_t> gone;
  {
    const std::lock_guard lock(pinned_mutex);
    std::erase_if(pinned, [&](const auto& each) {
      const bool expired = each.second.second.expired();
      if (expired && each.second.first != 0) gone.push_back(each.second.first);
      return expired;
    });
  }
  for (const std::uint64_t number : gone) add("free", requests::Free{{number}});
}

RemoteGpu::State::PinnedPart RemoteGpu::State::pinned_at(ConstRegion bytes) {
  forget_pinned();
  const std::lock_guard lock(pinned_mutex);
  const auto found = bytes.bytes == 0 ? pinned.end() : pinned.lower_bound(bytes.data + bytes.bytes);
  if (found == pinned.end()) return {};
  const auto block = found->second.second.lock();
  const bool is_inside = block && bytes.data >= block->region().data;
  if (!is_inside || PinnedMemory(block).by() != "server") return {};
  return {block, {block->number, static_cast<Bytes>(bytes.data - block->region().data)}};
}

bool RemoteDriver::begin_put(std::uint64_t array, Bytes offset, ConstRegion bytes) {
  RemoteGpu::State& state = gpu_.held();
  const auto alone = state.alone("put");
  const auto pinned = state.pinned_at(bytes);
  if (!pinned) return false;
  state.add("put", requests::BeginPut{{{array, offset, bytes.bytes}, pinned.place}});
  return true;
}

RemoteReply RemoteGpu::State::copy_pinned(std::string_view call, const RemoteRequest& request,
                                          const PinnedPart& memory) {
  add(call, request);
  RemoteReply reply;
  try {
    reply = told_as(call, [&] {
      requests.flush();
      return requests.receive_reply();
    });
  } catch (...) {
    memory.block->part();  // the server may still be about to copy
    throw;
  }
  throw_failure(reply);
  return reply;
}

}  // namespace waywiser
