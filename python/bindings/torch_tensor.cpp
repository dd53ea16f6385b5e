#include "bindings/torch_tensor.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string_view>

namespace nb = nanobind;

namespace waywiser {

std::optional<DataType> torch_type(std::string_view name) {
  constexpr std::pair<std::string_view, DataType> types[] = {{"torch.float32", DataType::float32},
                                                             {"torch.float64", DataType::float64},
                                                             {"torch.float16", DataType::float16},
                                                             {"torch.bfloat16", DataType::bfloat16},
                                                             {"torch.int64", DataType::int64},
                                                             {"torch.int32", DataType::int32},
                                                             {"torch.int16", DataType::int16},
                                                             {"torch.int8", DataType::int8},
                                                             {"torch.uint8", DataType::uint8},
                                                             {"torch.bool", DataType::uint8},
                                                             {"torch.uint16", DataType::uint16},
                                                             {"torch.uint32", DataType::uint32},
                                                             {"torch.uint64", DataType::uint64},
                                                             {"torch.complex64", DataType::complex64},
                                                             {"torch.complex128", DataType::complex128},
                                                             {"torch.float8_e4m3fn", DataType::float8_e4m3fn},
                                                             {"torch.float8_e5m2", DataType::float8_e5m2}};
  for (const auto& [known, type] : types)
    if (known == name) return type;
  return {};
}

namespace {

bool is_text(nb::handle object, std::string_view expected) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &length);
  if (text == nullptr) PyErr_Clear();
  return text != nullptr && std::string_view(text, static_cast<std::size_t>(length)) == expected;
}

bool is_tensor(nb::handle object) {
  const nb::handle type = object.type();
  const nb::object module = nb::getattr(type, "__module__", nb::none());
  return (is_text(module, "torch") && is_text(type.attr("__name__"), "Tensor")) ||
         (is_text(module, "torch.nn.parameter") && is_text(type.attr("__name__"), "Parameter"));
}

ArrayFacts read(nb::handle tensor) {
  ArrayFacts facts;
  facts.on_gpu = nb::cast<bool>(tensor.attr("is_cuda"));
  facts.contiguous = nb::cast<bool>(tensor.attr("is_contiguous")());
  facts.address = nb::cast<std::uintptr_t>(tensor.attr("data_ptr")());
  facts.bytes = nb::cast<Bytes>(tensor.attr("nbytes"));
  const nb::object type = tensor.attr("dtype");
  const std::string name = nb::cast<std::string>(nb::str(nb::handle(type)));  // of a handle: as str() in Python
  facts.type = torch_type(name);
  facts.of_bools = name == "torch.bool";
  if (facts.contiguous) return facts;
  facts.shape = nb::cast<std::vector<std::int64_t>>(nb::tuple(tensor.attr("shape")));
  facts.strides = nb::cast<std::vector<std::int64_t>>(tensor.attr("stride")());
  return facts;
}

}  // namespace

std::optional<ArrayFacts> read_torch_tensor(nb::handle object) {
  if (!is_tensor(object)) return {};
  try {
    const bool plain = nb::cast<bool>(object.attr("is_cuda")) || nb::cast<bool>(object.attr("is_cpu"));
    if (!plain || nb::cast<bool>(object.attr("is_neg")())) return {};
    ArrayFacts facts = read(object);
    const bool complex = facts.type && is_complex(*facts.type);
    if (complex && nb::cast<bool>(object.attr("is_conj")())) return {};  // its bytes are not its elements
    return facts;
  } catch (const nb::python_error&) {  // sparse, and whatever else has no address
    return {};
  }
}

}  // namespace waywiser
