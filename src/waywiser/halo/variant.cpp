#include "waywiser/halo/variant.hpp"

#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {

std::string_view name(HaloVariant variant) noexcept {
  switch (variant) {
    case HaloVariant::whole_field: return "whole_field";
    case HaloVariant::per_neighbor: return "per_neighbor";
    case HaloVariant::packed: return "packed";
    case HaloVariant::direct: return "direct";
    case HaloVariant::strided: return "strided";
    case HaloVariant::gpu_aware: return "gpu_aware";
    case HaloVariant::mixed: return "mixed";
  }
  return "";
}

HaloVariant parse_halo_variant(std::string_view text) {
  std::string names;
  for (const HaloVariant each : halo_variants) {
    if (name(each) == text) return each;
    names += (names.empty() ? "" : ", ") + std::string(name(each));
  }
  refuse_input(text, "is no variant of a halo exchange: " + names);
}

HaloCounts& HaloCounts::operator+=(const HaloCounts& more) noexcept {
  exchanges += more.exchanges;
  messages += more.messages;
  message_bytes += more.message_bytes;
  bus_copies += more.bus_copies;
  bus_bytes += more.bus_bytes;
  return *this;
}

}  // namespace waywiser
