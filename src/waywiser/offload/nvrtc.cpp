#include "waywiser/offload/nvrtc.hpp"

#include <array>
#include <memory>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

template <typename Function>
void take_nvrtc(const DynamicLibrary& library, Function*& function, const char* symbol) {
  function = library.find<Function>(symbol);
  if (function == nullptr) throw Error(ErrorKind::unavailable, library.name() + " has no " + symbol);
}

// A text whose size the library tells first.
template <typename Size, typename Text>
std::string text_of_program(Size size_of, Text text_of, void* program) {
  std::size_t size = 0;
  if (size_of(program, &size) != 0 || size == 0) return "";
  std::string text(size, ' ');
  if (text_of(program, text.data()) != 0) return "";
  text.pop_back();  // the zero at its end
  return text;
}

}  // namespace

Nvrtc::Nvrtc(const std::vector<std::string>& names) : library_(names) {
  if (!library_.loaded())
    throw Error(ErrorKind::unavailable, "CUDA source needs NVRTC on the server: " + library_.why_not());
  take_nvrtc(library_, create_, "nvrtcCreateProgram");
  take_nvrtc(library_, compile_, "nvrtcCompileProgram");
  take_nvrtc(library_, ptx_size_, "nvrtcGetPTXSize");
  take_nvrtc(library_, ptx_, "nvrtcGetPTX");
  take_nvrtc(library_, log_size_, "nvrtcGetProgramLogSize");
  take_nvrtc(library_, log_, "nvrtcGetProgramLog");
  take_nvrtc(library_, destroy_, "nvrtcDestroyProgram");
}

std::string Nvrtc::compile(const std::string& source, int capability) const {
  Program made = nullptr;
  if (create_(&made, source.c_str(), "source.cu", 0, nullptr, nullptr) != 0)
    throw Error(ErrorKind::invalid_input, "NVRTC takes no such source");
  const auto destroy = [this](void* program) { destroy_(&program); };
  const std::unique_ptr<void, decltype(destroy)> program(made, destroy);
  const std::string architecture = "--gpu-architecture=compute_" + std::to_string(capability);
  const std::array options{architecture.c_str(), "--std=c++17"};
  if (compile_(program.get(), static_cast<int>(options.size()), options.data()) != 0)
    throw Error(ErrorKind::invalid_input, "it does not compile\n" + text_of_program(log_size_, log_, program.get()));
  return text_of_program(ptx_size_, ptx_, program.get());
}

}  // namespace waywiser
