#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace waywiser {

// Grows without keeping its contents, and is page-aligned: copies and additions are faster if they begin at a cache
// line.
class ScratchMemory {
 public:
  void grow_to(std::size_t bytes) {
    if (bytes <= bytes_) return;
    data_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
    bytes_ = bytes;
  }
  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }

 private:
  static constexpr std::align_val_t alignment{4096};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, alignment); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace waywiser
