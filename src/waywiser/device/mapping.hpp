#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "waywiser/base/units.hpp"
#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// Owns pages of this process's address space: a whole number of pages, at least one.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, nullptr)), length_(other.length_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(length_, other.length_);
    return *this;
  }
  ~Mapping();

  std::byte* data() const noexcept { return data_; }
  Bytes length() const noexcept { return length_; }

  // Zeroed memory of this process. `what` names the place in messages. Both throw device.
  static Mapping anonymous(Bytes bytes, std::string_view what);
  // The pages of a file; `touchable` false: any access through this mapping faults.
  static Mapping of_file(const Descriptor& file, Bytes bytes, bool touchable, std::string_view what);

 private:
  Mapping(void* data, Bytes length) : data_(static_cast<std::byte*>(data)), length_(length) {}
  std::byte* data_ = nullptr;
  Bytes length_ = 0;
};

Bytes page_size();
Bytes round_up_to_pages(Bytes bytes);

// A memory file that other processes can map and that nobody can shrink. Throws device.
Descriptor create_shared_file(Bytes bytes, std::string_view what);
// Checks a descriptor from another process: throws device unless it is such a file of at least `bytes`.
void check_shared_file(const Descriptor& file, Bytes bytes, std::string_view what);

}  // namespace waywiser
