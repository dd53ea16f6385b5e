#pragma once

#include <string>
#include <vector>

#include "waywiser/base/dynamic_library.hpp"

namespace waywiser {

// NVIDIA's compiler of CUDA source at run time, opened by the names that the loader tries in this order.
class Nvrtc {
 public:
  // Throws unavailable with the loader's words.
  explicit Nvrtc(const std::vector<std::string>& names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});

  // PTX for a compute capability, as 90. Throws invalid_input; its lines after the first are the compiler's.
  std::string compile(const std::string& source, int capability) const;

 private:
  using Program = void*;

  DynamicLibrary library_;
  int (*create_)(Program*, const char* source, const char* name, int headers, const char* const* texts,
                 const char* const* names) = nullptr;
  int (*compile_)(Program, int options, const char* const* words) = nullptr;
  int (*ptx_size_)(Program, std::size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
  int (*log_size_)(Program, std::size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
};

}  // namespace waywiser
