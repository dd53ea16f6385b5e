#include "bindings/cuda_array_interface.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

namespace nb = nanobind;

namespace waywiser {
namespace {

constexpr const char* attribute = "__cuda_array_interface__";

// The type has it and the object does not raise AttributeError, as arrays in host memory do.
nb::object interface_of(nb::handle object) {
  const nb::handle type = object.type();
  if (!nb::hasattr(type, attribute)) return {};
  const std::string module = nb::cast<std::string>(nb::str(nb::handle(nb::getattr(type, "__module__", nb::none()))));
  if (module == "torch" || module.starts_with("torch.")) return {};
  nb::object found = nb::steal(PyObject_GetAttrString(object.ptr(), attribute));
  if (!found.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
    PyErr_Clear();
  }
  return found;
}

std::optional<DataType> type_of(const std::string& text) {
  if (text == "<f8") return DataType::float64;
  if (text == "<f4") return DataType::float32;
  if (text == "<f2") return DataType::float16;
  if (text == "|i1" || text == "<i1") return DataType::int8;
  if (text == "<i2") return DataType::int16;
  if (text == "<i4") return DataType::int32;
  if (text == "<i8") return DataType::int64;
  if (text == "|u1" || text == "<u1" || text == "|b1") return DataType::uint8;
  if (text == "<u2") return DataType::uint16;
  if (text == "<u4") return DataType::uint32;
  if (text == "<u8") return DataType::uint64;
  if (text == "<c8") return DataType::complex64;
  if (text == "<c16") return DataType::complex128;
  return {};
}

// "<f8" and "<M8[s]" are of 8 bytes, "<U2" of two characters of 4 bytes.
Bytes item_bytes(const std::string& typestr) {
  return std::stoull(typestr.substr(std::min<std::size_t>(typestr.size(), 2))) * (typestr[1] == 'U' ? 4 : 1);
}

// For an array with elements. Strides are in bytes.
void read_strides(ArrayFacts& facts, const nb::dict& interface, const std::vector<std::size_t>& shape, Bytes item) {
  const nb::object given = interface.attr("get")("strides");
  if (given.is_none()) return;
  auto strides = nb::cast<std::vector<std::int64_t>>(given);
  if (strides.size() != shape.size()) throw nb::type_error("strides");
  auto expected = static_cast<std::int64_t>(item);
  for (std::size_t i = shape.size(); i-- > 0;) {
    facts.contiguous = facts.contiguous && (shape[i] <= 1 || strides[i] == expected);
    expected *= static_cast<std::int64_t>(shape[i]);
  }
  if (facts.contiguous) return;
  for (std::int64_t& stride : strides) {
    if (stride % static_cast<std::int64_t>(item) != 0) return;
    stride /= static_cast<std::int64_t>(item);
  }
  facts.shape.assign(shape.begin(), shape.end());
  facts.strides = std::move(strides);
}

ArrayFacts read(nb::handle object, const nb::dict& interface) {
  const auto shape = nb::cast<std::vector<std::size_t>>(interface["shape"]);
  const auto [address, read_only] = nb::cast<std::pair<std::uintptr_t, bool>>(interface["data"]);
  ArrayFacts facts;
  facts.address = address;
  facts.read_only = read_only;
  facts.on_gpu = true;
  const auto typestr = nb::cast<std::string>(interface["typestr"]);
  facts.type = type_of(typestr);
  if (!facts.type) facts.type = type_by_name(object);
  facts.of_bools = typestr == "|b1";
  const Bytes item = facts.type ? bytes_of(*facts.type) : item_bytes(typestr);
  facts.bytes = item;
  for (const std::size_t extent : shape) facts.bytes *= extent;
  if (facts.bytes != 0) read_strides(facts, interface, shape, item);
  return facts;
}

}  // namespace

std::optional<DataType> type_by_name(nb::handle array) {
  const nb::object type = nb::getattr(array, "dtype", nb::none());
  const nb::object given = nb::getattr(type, "name", nb::none());
  std::string text;
  if (!nb::try_cast(given, text, false)) return {};
  for (const DataType known : {DataType::bfloat16, DataType::float8_e4m3fn, DataType::float8_e5m2})
    if (text == name(known)) return known;
  return {};
}

std::optional<ArrayFacts> read_cuda_array_interface(nb::handle object) {
  const nb::object interface = interface_of(object);
  if (!interface.is_valid()) return {};
  int version = 0;
  try {
    const auto fields = nb::cast<nb::dict>(interface);
    version = nb::cast<int>(fields["version"]);
    const bool masked = fields.contains("mask") && !fields["mask"].is_none();
    if (version >= 2 && !masked) return read(object, fields);
  } catch (const std::exception&) {  // a field is missing or of another type
    refuse_array(object, "has a __cuda_array_interface__ that cannot be understood");
  }
  refuse_array(object, version < 2 ? "has a __cuda_array_interface__ of version " + std::to_string(version) +
                                         ": 2 and 3 are understood"
                                   : "is masked");
}

}  // namespace waywiser
