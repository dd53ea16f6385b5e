// Which tensors a call takes as they are, and how they become its arguments.
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>

#include <array>
#include <cstddef>
#include <exception>
#include <string>

#include "core.hpp"

namespace waywiser::torch_backend {

// The group's numbers of PyTorch's types and operations; below 0: it has none.
class Numbers {
 public:
  explicit Numbers(const Core& core) {
    for (std::size_t i = 0; i < types_.size(); ++i) types_[i] = core.type_of(name_of(i).c_str());
    constexpr std::array names = {"sum", "avg", "prod", "min", "max", "band", "bor", "bxor"};  // as RedOpType
    for (std::size_t i = 0; i < names.size(); ++i) operations_[i] = core.operation_of(names[i]);
  }

  int of(at::ScalarType type) const { return types_[static_cast<std::size_t>(type)]; }
  int of(const c10d::ReduceOp& operation) const {
    const auto place = static_cast<std::size_t>(operation.op_);
    return place < operations_.size() ? operations_[place] : -1;
  }

 private:
  static std::string name_of(std::size_t type) {
    try {
      return std::string("torch.") + torch::getTHPDtype(static_cast<at::ScalarType>(type))->name;
    } catch (const std::exception&) {
      return "";
    }
  }

  std::array<int, static_cast<std::size_t>(at::ScalarType::NumOptions)> types_{};
  std::array<int, 8> operations_{};
};

// Plain memory in C order, not empty, of a type that the group has.
inline bool is_plain(const at::Tensor& tensor, const Numbers& numbers) {
  return tensor.defined() && tensor.layout() == at::kStrided && (tensor.is_cpu() || tensor.is_cuda()) &&
         tensor.has_storage() && tensor.is_contiguous() && tensor.numel() != 0 && !tensor.is_conj() &&
         !tensor.is_neg() && numbers.of(tensor.scalar_type()) >= 0;
}

inline bool are_plain(const at::Tensor& input, const at::Tensor& output, const Numbers& numbers) {
  return is_plain(input, numbers) && is_plain(output, numbers) && input.device() == output.device() &&
         input.scalar_type() == output.scalar_type();
}

inline void set_input(CallArguments& arguments, const at::Tensor& tensor) {
  arguments.input = tensor.const_data_ptr();
  arguments.input_bytes = tensor.nbytes();
}

inline void set_output(CallArguments& arguments, const at::Tensor& tensor) {
  arguments.output = tensor.mutable_data_ptr();
  arguments.output_bytes = tensor.nbytes();
}

}  // namespace waywiser::torch_backend
