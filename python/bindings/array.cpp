#include "bindings/array.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <optional>

#include "bindings/cuda_array_interface.hpp"
#include "bindings/torch_tensor.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace nb = nanobind;

namespace waywiser {
namespace {

constexpr int dlpack_cuda = 2, dlpack_cuda_host = 3, dlpack_cuda_managed = 13;

std::optional<DataType> type_of(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) {
    return type.code == static_cast<std::uint8_t>(code) && type.bits == bits && type.lanes == 1;
  };
  if (is(Code::Float, 64)) return DataType::float64;
  if (is(Code::Float, 32)) return DataType::float32;
  if (is(Code::Float, 16)) return DataType::float16;
  if (is(Code::Bfloat, 16)) return DataType::bfloat16;
  if (is(Code::Int, 8)) return DataType::int8;
  if (is(Code::Int, 16)) return DataType::int16;
  if (is(Code::Int, 32)) return DataType::int32;
  if (is(Code::Int, 64)) return DataType::int64;
  if (is(Code::UInt, 8) || is(Code::Bool, 8)) return DataType::uint8;
  if (is(Code::UInt, 16)) return DataType::uint16;
  if (is(Code::UInt, 32)) return DataType::uint32;
  if (is(Code::UInt, 64)) return DataType::uint64;
  if (is(Code::Complex, 64)) return DataType::complex64;
  if (is(Code::Complex, 128)) return DataType::complex128;
  if (is(Code::Float8_E4M3FN, 8)) return DataType::float8_e4m3fn;
  if (is(Code::Float8_E5M2, 8)) return DataType::float8_e5m2;
  return {};
}

template <typename Array>
bool is_contiguous(const Array& array) {
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) > 1 && array.stride(i) != stride && array.size() != 0) return false;
    stride *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

// The library's own message if it does not export an array: for example that it needs gradients, or is sparse.
std::string words_of(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__")) return "";
  try {
    object.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    return ": " + nb::cast<std::string>(nb::str(error.value()));
  }
  return "";
}

// NumPy gives out no array whose elements it does not know itself, but one of their bytes.
nb::object bits_of(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0 || !nb::hasattr(object, "dtype")) return {};
  try {
    const auto size = nb::cast<std::size_t>(object.attr("dtype").attr("itemsize"));
    return object.attr("view")("u" + std::to_string(std::has_single_bit(size) && size <= 8 ? size : 1));
  } catch (const std::exception&) {  // nothing of NumPy's, or no numbers
    return {};
  }
}

template <typename Array>
ArrayFacts facts_of(nb::handle object) {
  Array array;
  nb::object bits;
  if (!nb::try_cast(object, array, false) || !type_of(array.dtype())) bits = bits_of(object);
  if (bits.is_valid() ? !nb::try_cast(bits, array, false) : !array.is_valid()) {
    const nb::handle known = bits.is_valid() ? bits : object;
    const bool readable =
        std::is_same_v<Array, nb::ndarray<>> && nb::try_cast(known, *std::make_unique<nb::ndarray<nb::ro>>(), false);
    refuse_array(object, readable
                             ? "cannot be written to"
                             : "is no array: give it a buffer, DLPack or __cuda_array_interface__" + words_of(object));
  }
  ArrayFacts facts;
  facts.address = reinterpret_cast<std::uintptr_t>(array.data());
  facts.bytes = array.nbytes();
  facts.type = bits.is_valid() ? type_by_name(object) : type_of(array.dtype());
  facts.of_bools = array.dtype().code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bool);
  facts.contiguous = is_contiguous(array);
  for (std::size_t i = 0; !facts.contiguous && i < array.ndim(); ++i) {
    facts.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    facts.strides.push_back(array.stride(i));
  }
  const int device = array.device_type();
  facts.on_gpu = device == dlpack_cuda || device == dlpack_cuda_managed;
  if (!facts.on_gpu && device != nb::device::cpu::value && device != dlpack_cuda_host)
    refuse_array(
        object, "is on a device of kind " + std::to_string(device) + " of DLPack: host memory and CUDA GPUs are taken");
  return facts;
}

// Arrays with a buffer are in host memory, and looking further would cost as much as a short message.
std::optional<ArrayFacts> read_directly(nb::handle array) {
  if (PyObject_CheckBuffer(array.ptr()) != 0) return {};
  if (auto tensor = read_torch_tensor(array)) return tensor;
  return read_cuda_array_interface(array);
}

DataType checked_type(nb::handle object, const ArrayFacts& facts) {
  if (!facts.type)
    refuse_array(object,
                 "has elements of a type that cannot be sent: float64, float32, float16, bfloat16, int8 to int64, "
                 "uint8 to uint64, bool, complex64, complex128, float8_e4m3fn, float8_e5m2");
  return *facts.type;
}

Region region_of(nb::handle object, const ArrayFacts& facts, Bytes bytes, const PlatformSource& platform) {
  Region region{std::bit_cast<std::byte*>(facts.address), bytes, host(0)};
  if (facts.on_gpu && bytes != 0) {
    const std::shared_ptr<Platform> gpus = platform();
    const std::optional<Place> place = gpus->gpu_of(region.data);
    if (!place) refuse_array(object, why_foreign(*gpus));
    region.place = *place;
  }
  return region;
}

Region bytes_of_array(nb::handle object, const ArrayFacts& facts, const PlatformSource& platform) {
  if (!facts.contiguous) refuse_array(object, "is not contiguous (C order)");
  return region_of(object, facts, facts.bytes, platform);
}

// Checks the array; returns its memory and its type.
std::pair<Region, DataType> elements_of(nb::handle object, const ArrayFacts& facts, const PlatformSource& platform) {
  const DataType type = checked_type(object, facts);
  return {bytes_of_array(object, facts, platform), type};
}

ArrayFacts output_facts(nb::handle array) {
  std::optional<ArrayFacts> known = read_directly(array);
  if (known && known->read_only) refuse_array(array, "cannot be written to");
  return known ? *std::move(known) : facts_of<nb::ndarray<>>(array);
}
ArrayFacts input_facts(nb::handle array) {
  std::optional<ArrayFacts> known = read_directly(array);
  return known ? *std::move(known) : facts_of<nb::ndarray<nb::ro>>(array);
}

}  // namespace

void refuse_array(nb::handle object, const std::string& why) {
  refuse_array(nb::cast<std::string>(object.type().attr("__name__")), why);
}

void refuse_array(const std::string& type, const std::string& why) {
  throw Error(ErrorKind::invalid_input, "an array was expected, '" + type + "' " + why);
}

std::string why_foreign(const Platform& gpus) {
  return "is in GPU memory that the GPUs of this group (" + std::string(gpus.backend()) + ") do not have";
}

ConstElements input_elements(nb::handle array, const PlatformSource& platform, bool* of_bools) {
  const ArrayFacts facts = input_facts(array);
  const auto [region, type] = elements_of(array, facts, platform);
  if (of_bools != nullptr) *of_bools = facts.of_bools;
  return {region, type};
}

Elements output_elements(nb::handle array, const PlatformSource& platform) {
  const auto [region, type] = elements_of(array, output_facts(array), platform);
  return {region, type};
}

ConstRegion input_region(nb::handle array, const PlatformSource& platform) {
  return bytes_of_array(array, input_facts(array), platform);
}

Region output_region(nb::handle array, const PlatformSource& platform) {
  return bytes_of_array(array, output_facts(array), platform);
}

std::pair<Elements, ArrayPart> box_elements(nb::handle array, const PlatformSource& platform, bool written) {
  const ArrayFacts facts = written ? output_facts(array) : input_facts(array);
  const DataType type = checked_type(array, facts);
  ArrayPart part = ArrayPart::whole(type, facts.bytes / bytes_of(type));
  if (!facts.contiguous) {
    if (facts.strides.empty()) refuse_array(array, "has strides that are no whole number of elements");
    try {
      part = ArrayPart::box(type, facts.shape, facts.strides);
    } catch (const Error& error) {
      refuse_array(array, error.what());
    }
  }
  return {{region_of(array, facts, part.array_count * bytes_of(type), platform), type}, part};
}

std::pair<Elements, ArrayPart> listed_elements(nb::handle array, std::span<const std::int64_t> indices,
                                               std::size_t length, const PlatformSource& platform, bool written) {
  const auto [region, type] = elements_of(array, written ? output_facts(array) : input_facts(array), platform);
  const Elements elements(region, type);
  try {
    return {elements, ArrayPart::indexed(type, elements.count(), indices, length)};
  } catch (const Error& error) {
    refuse_array(array, error.what());
  }
}

}  // namespace waywiser
