#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace waywiser {

// Numbers and texts as little-endian bytes, for messages between machines.
class WireWriter {
 public:
  template <std::unsigned_integral Number>
  void number(Number value) {
    std::array<std::byte, sizeof value> bytes;
    for (std::size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<std::byte>(std::uint64_t{value} >> (8 * i));
    raw(bytes);
  }
  void raw(std::span<const std::byte> bytes) {
    for (const std::byte each : bytes)
      bytes_.push_back(each);  // g++ 12 warns of an overflow in insert() where there is none
  }
  void block(std::span<const std::byte> bytes);  // preceded by its length
  void text(std::string_view text);              // preceded by its length
  const std::vector<std::byte>& bytes() const& noexcept { return bytes_; }
  std::vector<std::byte> bytes() && noexcept { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Parses such bytes without trusting them: throws invalid_input if there are too few, or a length exceeds its limit.
// `what` names the message.
class WireReader {
 public:
  WireReader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  template <std::unsigned_integral Number>
  Number number() {
    std::uint64_t value = 0;
    const auto from = raw(sizeof(Number));
    for (std::size_t i = 0; i < from.size(); ++i) value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return static_cast<Number>(value);
  }
  std::span<const std::byte> raw(std::size_t count);
  std::span<const std::byte> block(std::size_t most);
  std::string text(std::size_t most);
  std::size_t left() const noexcept { return bytes_.size(); }
  // Throws if bytes are left.
  void end() const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::span<const std::byte> bytes_;
  std::string what_;
};

}  // namespace waywiser
