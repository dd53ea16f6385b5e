#pragma once

#include <cstdint>

#include "waywiser/table/arrow_interface.h"

namespace waywiser {

// Owns an array of Arrow's C data interface.
class Batch {
 public:
  Batch() = default;
  // Moves `array` out of there.
  explicit Batch(ArrowArray& array) noexcept : array_(array) { array.release = nullptr; }
  Batch(Batch&& other) noexcept : Batch(other.array_) {}
  Batch& operator=(Batch&& other) noexcept {
    if (this == &other) return *this;
    let_go();
    array_ = other.array_;
    other.array_.release = nullptr;
    return *this;
  }
  ~Batch() { let_go(); }

  ArrowArray& array() noexcept { return array_; }
  const ArrowArray& array() const noexcept { return array_; }
  std::int64_t rows() const noexcept { return array_.length; }
  // To its next owner.
  ArrowArray move_out() noexcept {
    const ArrowArray array = array_;
    array_.release = nullptr;
    return array;
  }

 private:
  void let_go() noexcept {
    if (array_.release != nullptr) array_.release(&array_);
  }

  ArrowArray array_{};
};

}  // namespace waywiser
