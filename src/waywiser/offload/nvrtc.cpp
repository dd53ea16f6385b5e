#include "waywiser/offload/nvrtc.hpp"

#include <array>
#include <utility>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/offload/without_files.hpp"

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

struct Nvrtc::Library {
  using Program = void*;

  explicit Library(const std::vector<std::string>& names) : library(names) {
    if (!library.loaded()) throw Error(ErrorKind::unavailable, "CUDA source needs NVRTC on the server: " + why_not());
    take_nvrtc(library, create, "nvrtcCreateProgram");
    take_nvrtc(library, compile, "nvrtcCompileProgram");
    take_nvrtc(library, ptx_size, "nvrtcGetPTXSize");
    take_nvrtc(library, ptx, "nvrtcGetPTX");
    take_nvrtc(library, log_size, "nvrtcGetProgramLogSize");
    take_nvrtc(library, log, "nvrtcGetProgramLog");
    take_nvrtc(library, destroy, "nvrtcDestroyProgram");
  }

  // A client is not told where the server has its libraries.
  std::string why_not() const {
    return library.why_not().find('/') == std::string::npos ? library.why_not() : "its library does not load";
  }

  std::string ptx_of(const std::string& source, int capability) const {
    Program made = nullptr;
    if (create(&made, source.c_str(), "source.cu", 0, nullptr, nullptr) != 0)
      throw Error(ErrorKind::invalid_input, "NVRTC takes no such source");
    const auto destroy_it = [this](void* program) { destroy(&program); };
    const std::unique_ptr<void, decltype(destroy_it)> program(made, destroy_it);
    const std::string architecture = "--gpu-architecture=compute_" + std::to_string(capability);
    const std::array options{architecture.c_str(), "--std=c++17"};
    if (compile(program.get(), static_cast<int>(options.size()), options.data()) != 0)
      throw Error(ErrorKind::invalid_input, "it does not compile\n" + text_of_program(log_size, log, program.get()));
    return text_of_program(ptx_size, ptx, program.get());
  }

  DynamicLibrary library;
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names) = nullptr;
  int (*compile)(Program, int options, const char* const* words) = nullptr;
  int (*ptx_size)(Program, std::size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  bool is_warm = false, is_late = false;
};

Nvrtc::Nvrtc(const std::vector<std::string>& names) : library_(std::make_shared<Library>(names)) {}

// The first source is ours: with it NVRTC loads the libraries that it needs.
std::string Nvrtc::compile(const std::string& source, int capability, Seconds patience) const {
  if (library_->is_late)
    throw Error(ErrorKind::unavailable, "an earlier source of this client is still being compiled");
  if (!std::exchange(library_->is_warm, true))
    static_cast<void>(library_->ptx_of("__global__ void first() {}", capability));
  const auto ptx = std::make_shared<std::string>();
  try {
    run_without_files([=, library = library_] { *ptx = library->ptx_of(source, capability); }, Deadline::in(patience));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    library_->is_late = true;
    throw Error(ErrorKind::timeout, "it has not compiled within " + format_seconds(patience));
  }
  return std::move(*ptx);
}

}  // namespace waywiser
