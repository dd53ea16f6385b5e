#pragma once

#include <span>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/data_type.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {

// A view of numbers of one type, anywhere. Arrays in host memory convert implicitly: all_reduce(std::span(x), ...).
struct ConstElements {
  ConstRegion region;
  DataType type = DataType::uint8;

  ConstElements() = default;
  // Throws invalid_input unless the bytes are a whole number of elements.
  ConstElements(ConstRegion where, DataType what) : region(where), type(what) {
    if (where.bytes % bytes_of(what) != 0)
      throw Error(ErrorKind::invalid_input,
                  std::to_string(where.bytes) + " bytes are no whole number of " + std::string(name(what)));
  }
  template <typename T, std::size_t extent>
  ConstElements(std::span<T, extent> values)  // NOLINT(google-explicit-constructor)
      : ConstElements(values, host(0)) {}
  // GPU memory: the host must not touch the values.
  template <typename T, std::size_t extent>
  ConstElements(std::span<T, extent> values, Place place)
      : region{reinterpret_cast<const std::byte*>(values.data()), values.size_bytes(), place},
        type(DataTypeOf<std::remove_const_t<T>>::value) {}

  std::size_t count() const noexcept { return region.bytes / bytes_of(type); }
  ConstElements slice(std::size_t first, std::size_t elements) const {
    return {region.slice(first * bytes_of(type), elements * bytes_of(type)), type};
  }
};

struct Elements {
  Region region;
  DataType type = DataType::uint8;

  Elements() = default;
  Elements(Region where, DataType what) : region(where), type(what) { static_cast<void>(ConstElements(where, what)); }
  template <typename T, std::size_t extent>
  Elements(std::span<T, extent> values)  // NOLINT(google-explicit-constructor)
      : Elements(values, host(0)) {}
  template <typename T, std::size_t extent>
  Elements(std::span<T, extent> values, Place place)
      : region{reinterpret_cast<std::byte*>(values.data()), values.size_bytes(), place}, type(DataTypeOf<T>::value) {}

  std::size_t count() const noexcept { return region.bytes / bytes_of(type); }
  Elements slice(std::size_t first, std::size_t elements) const {
    return {region.slice(first * bytes_of(type), elements * bytes_of(type)), type};
  }
  // Its length has been checked.
  operator ConstElements() const noexcept {  // NOLINT(google-explicit-constructor)
    ConstElements read;
    read.region = region;
    read.type = type;
    return read;
  }
};

}  // namespace waywiser
