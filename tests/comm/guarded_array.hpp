#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "waywiser/comm/elements.hpp"

namespace waywiser {

// An array that ends where no memory is, and can be replaced by other memory at its address.
class GuardedArray {
 public:
  explicit GuardedArray(std::size_t bytes, std::byte fill)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        bytes_(bytes),
        mapped_((bytes + page_ - 1) / page_ * page_),
        all_(static_cast<std::byte*>(
            ::mmap(nullptr, mapped_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    map(fill);
  }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;
  ~GuardedArray() { ::munmap(all_, mapped_ + 2 * page_); }

  std::span<std::byte> bytes() const { return {all_ + page_ + mapped_ - bytes_, bytes_}; }
  bool holds_only(std::byte value) const {
    return std::ranges::all_of(bytes(), [=](std::byte one) { return one == value; });
  }
  // Replaces the memory by other memory at the same address.
  void replace() {
    ::munmap(all_ + page_, mapped_);
    map(poison);
  }
  bool is_untouched() const { return holds_only(poison); }

 private:
  static constexpr std::byte poison{0x5a};

  void map(std::byte fill) {
    void* const memory =
        ::mmap(all_ + page_, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    std::memset(memory, static_cast<int>(fill), mapped_);
  }

  std::size_t page_, bytes_, mapped_;
  std::byte* all_;
};

}  // namespace waywiser
