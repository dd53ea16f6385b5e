#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/data_type.hpp"

namespace waywiser {

// An array as any of the protocols describes it.
struct ArrayFacts {
  std::uintptr_t address = 0;
  Bytes bytes = 0;
  std::optional<DataType> type;  // nothing: one that cannot be sent
  bool of_bools = false;         // which are sent as uint8
  bool contiguous = true;
  std::vector<std::int64_t> shape, strides;  // of those that are not contiguous; in elements
  bool on_gpu = false;
  bool read_only = false;
};

// For element types that NumPy does not know (those of ml_dtypes): the type that `array.dtype.name` names, or nothing.
std::optional<DataType> type_by_name(nanobind::handle array);

// "an array was expected, 'Tensor' is not contiguous".
[[noreturn]] void refuse_array(nanobind::handle object, const std::string& why);
[[noreturn]] void refuse_array(const std::string& type, const std::string& why);

// Nothing when the object has no __cuda_array_interface__. Tensors of PyTorch have one, but DLPack knows their
// bfloat16. Throws invalid_input for what is not version 2 or 3.
std::optional<ArrayFacts> read_cuda_array_interface(nanobind::handle object);

}  // namespace waywiser
