#include "waywiser/offload/client_kernels.hpp"

#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_codes = 1000;
constexpr Bytes most_code = Bytes{64} << 20;

std::string names_of(const std::map<std::string, KernelParameters>& kernels) {
  std::string text;
  for (const auto& [name, parameters] : kernels) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

std::unique_ptr<KernelMaker> open_kernel_maker(const Platform& platform, Place gpu) {
  if (platform.backend() != "cuda")
    throw Error(ErrorKind::unavailable,
                "CUDA kernels need a GPU of CUDA, and this one is virtual: the server was started with --virtual");
  return open_cuda_kernel_maker(platform.native_number(gpu.index));
}

void ClientKernels::add(std::uint64_t number, std::string code) {
  auto known = made_.find(code);
  if (known == made_.end()) {
    if (made_.size() >= most_codes || used_ + code.size() > most_code)
      throw Error(ErrorKind::invalid_input, "a client has at most " + std::to_string(most_codes) + " codes of " +
                                                std::to_string(most_code >> 20) + " MiB together");
    auto made = std::make_shared<const Made>(make(code));
    used_ += code.size();
    known = made_.emplace(std::move(code), std::move(made)).first;
  }
  if (numbered_.size() >= most_codes || !numbered_.emplace(number, known->second).second)
    throw Error(ErrorKind::invalid_input,
                "there is a code " + std::to_string(number) + " already, or there are " + std::to_string(most_codes));
}

ClientKernels::Made ClientKernels::make(const std::string& code) {
  Made made;
  const CodeKind kind = kind_of_code(code);
  const std::string compiled = kind == CodeKind::source ? maker_->compile(code) : code;
  made.is_ptx = kind != CodeKind::cubin;
  if (made.is_ptx) made.kernels = kernels_of_ptx(compiled);
  made.module = maker_->load(compiled);
  return made;
}

void ClientKernels::launch(Stream& stream, std::uint64_t number, const std::string& kernel, const LaunchShape& shape,
                           std::span<const KernelArgument> arguments) {
  const auto code = numbered_.find(number);
  if (code == numbered_.end()) throw Error(ErrorKind::invalid_input, "there is no code " + std::to_string(number));
  const Made& made = *code->second;
  check(shape);
  if (made.is_ptx) {
    const auto found = made.kernels.find(kernel);
    if (found == made.kernels.end())
      throw Error(ErrorKind::invalid_input, "the code has no kernel of this name, but " + names_of(made.kernels) +
                                                "; a kernel is extern \"C\" __global__");
    check_arguments(found->second, arguments);
  } else {
    check_arguments(made.module->parameters(kernel), arguments);
  }
  made.module->launch(stream, kernel, shape, arguments);
}

}  // namespace waywiser
