#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/offload/launch.hpp"

namespace waywiser {

enum class CodeKind { source, ptx, cubin };
// PTX begins with ".version", after comments, a cubin is an ELF file, and a fatbin, which is taken as one, has a number
// of its own; everything else is CUDA source.
CodeKind kind_of_code(std::string_view code);

// A parameter of a kernel, by its type in PTX: "u64"; empty for one that no argument has, as a struct.
struct KernelParameter {
  std::string type;
  bool is_pointer = false;
};
using KernelParameters = std::vector<KernelParameter>;

// By the names of the kernels. Throws nothing: what is no PTX has no kernels.
std::map<std::string, KernelParameters> kernels_of_ptx(std::string_view ptx);

// Throw invalid_input in one line.
void check(const LaunchShape& shape);
void check_arguments(const KernelParameters& parameters, std::span<const KernelArgument> arguments);

}  // namespace waywiser
