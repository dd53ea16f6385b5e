#if !defined(__x86_64__)
#include <cstring>

#include "waywiser/transport/host_copy/nontemporal_copy.hpp"

namespace waywiser {

std::optional<std::string> why_no_nontemporal_copy() {
  return "stores=nontemporal is written for x86-64 only; this is another CPU";
}

bool nontemporal_width_available(unsigned) { return false; }

void nontemporal_copy(std::byte* destination, const std::byte* source, Bytes bytes) {
  if (bytes != 0) std::memcpy(destination, source, bytes);
}

void nontemporal_copy_of_width(unsigned, std::byte* destination, const std::byte* source, Bytes bytes) {
  nontemporal_copy(destination, source, bytes);
}

}  // namespace waywiser
#endif
