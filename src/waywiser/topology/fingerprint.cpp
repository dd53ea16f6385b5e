#include <algorithm>
#include <array>
#include <cstdio>

#include "waywiser/topology/topology.hpp"

namespace waywiser {
namespace {

// FNV-1a, 64 bits: tells machines apart, does not protect against forgery.
class Hash {
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

}  // namespace

std::string fingerprint(const Topology& topology) {
  Hash hash;
  for (const auto& [name, version] : topology.software) {
    hash.add(name);
    hash.add(version);
  }
  for (const Device& device : topology.devices) {
    hash.add(device.id);
    hash.add(device.name);
    hash.add(device.bus_id);
    hash.add(static_cast<std::uint64_t>(device.numa + 1));
    if (device.kind == "gpu") hash.add(device.memory_bytes);
  }
  for (const Link& link : topology.links) {
    hash.add(link.a);
    hash.add(link.b);
    hash.add(link.kind);
    for (const int number : {link.max_generation, link.max_width, link.count})
      hash.add(static_cast<std::uint64_t>(number));
  }
  return hash.hexadecimal();
}

}  // namespace waywiser
