#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <concepts>
#include <optional>
#include <string>
#include <utility>

namespace waywiser {

// Raises InputError for a whole number that is out of range, else InputTypeError: one line.
[[noreturn]] void refuse_argument(const char* name, nanobind::handle given, const char* expected);

template <typename T>
struct Expected {
  static constexpr auto words = "a list of whole numbers that are not negative";
};
template <std::integral T>
struct Expected<T> {
  static constexpr auto words = "a whole number";
};
template <>
struct Expected<bool> {
  static constexpr auto words = "True or False";
};
template <std::floating_point T>
struct Expected<T> {
  static constexpr auto words = "a number";
};
template <>
struct Expected<std::string> {
  static constexpr auto words = "a string";
};
template <typename T>
struct Expected<std::optional<T>> : Expected<T> {};

// An argument that the call itself refuses when it has the wrong type: nanobind would list its overloads. With the GIL.
template <typename T>
struct Argument {
  std::optional<T> value;
  nanobind::handle given;

  const T& operator()(const char* name) const {
    if (!value) refuse_argument(name, given, Expected<T>::words);
    return *value;
  }
};

// The same for an item of a list.
template <typename T>
T item(nanobind::handle given, const char* name) {
  T value{};
  if (!nanobind::try_cast(given, value)) refuse_argument(name, given, Expected<T>::words);
  return value;
}

}  // namespace waywiser

template <typename T>
struct nanobind::detail::type_caster<waywiser::Argument<T>> {
  NB_TYPE_CASTER(waywiser::Argument<T>, make_caster<T>::Name)

  bool from_python(handle given, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<T> caster;
    value.given = given;
    if (caster.from_python(given, flags, cleanup)) value.value.emplace(caster.operator cast_t<T>());
    return true;
  }
};
