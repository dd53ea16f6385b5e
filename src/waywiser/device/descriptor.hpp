#pragma once

#include <utility>

namespace waywiser {

// Owns an operating-system file descriptor.
class [[gnu::visibility("default")]] Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int number() const noexcept { return number_; }
  bool open() const noexcept { return number_ >= 0; }
  Descriptor duplicate() const;  // throws io

 private:
  int number_ = -1;
};

}  // namespace waywiser
