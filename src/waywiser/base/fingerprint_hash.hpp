#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace waywiser {

// FNV-1a, 64 bits: tells texts apart, does not protect against forgery.
class FingerprintHash {
 public:
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(0xff);  // an end mark, so that "ab","c" differs from "a","bc"
  }
  void add(std::uint64_t number) { add(std::to_string(number)); }
  std::string hexadecimal() const {
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value_));
    return text.data();
  }

 private:
  void mix(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

}  // namespace waywiser
