#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace waywiser {

// Overwrites memory; the compiler cannot remove it.
[[gnu::visibility("default")]] void wipe(std::span<std::byte> bytes) noexcept;

// A text that is wiped on destruction.
class Secret {
 public:
  Secret() = default;
  Secret(std::string text) : text_(std::move(text)) {}
  Secret(const char* text) : text_(text) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret& other) {
    if (this != &other) {
      forget();
      text_ = other.text_;
    }
    return *this;
  }
  ~Secret() { forget(); }

  bool empty() const noexcept { return text_.empty(); }
  std::size_t size() const noexcept { return text_.size(); }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(text_)); }
  void forget() noexcept {
    wipe(std::as_writable_bytes(std::span(text_)));
    text_.clear();
  }

 private:
  std::string text_;
};

}  // namespace waywiser
