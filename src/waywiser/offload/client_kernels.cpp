#include "waywiser/offload/client_kernels.hpp"

#include <limits>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_codes = 1000, most_found = 100'000;
constexpr Bytes most_code = Bytes{64} << 20;

std::string names_of(const std::map<std::string, KernelParameters>& kernels) {
  std::string text;
  for (const auto& [name, parameters] : kernels) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

[[noreturn]] void refuse_driver() { throw Error(ErrorKind::unavailable, "this needs a GPU of CUDA"); }

}  // namespace

std::string facts_of_gpu(const Platform& platform, Place gpu) {
  if (platform.backend() == "cuda") return facts_of_cuda_gpu(platform.native_number(gpu.index));
  // Of a virtual GPU: sizes that programs ask for, and a compute capability that they know, though it runs no kernels.
  constexpr int threads = 1024, grid = 65535;
  std::vector<int> attributes(76);
  for (const std::size_t lengths : {0, 1, 2}) attributes[lengths] = threads;
  attributes[3] = 64;
  attributes[4] = std::numeric_limits<int>::max();
  attributes[5] = attributes[6] = grid;
  attributes[7] = 48 << 10;
  attributes[8] = 64 << 10;
  attributes[9] = 32;
  attributes[15] = platform.multiprocessors(gpu.index);
  attributes[74] = 9;  // 9.0
  return Json{{"name", "virtual GPU"},
              {"bytes", platform.free_memory(gpu) + platform.allocated_memory(gpu.index)},
              {"uuid", std::string(32, '0')},
              {"version", 13000},
              {"attributes", attributes}}
      .dump();
}

std::unique_ptr<KernelMaker> open_kernel_maker(const Platform& platform, Place gpu) {
  if (platform.backend() != "cuda")
    throw Error(ErrorKind::unavailable,
                "CUDA kernels need a GPU of CUDA, and this one is virtual: the server was started with --virtual");
  return open_cuda_kernel_maker(platform.native_number(gpu.index));
}

KernelFacts KernelModule::facts(const std::string&) { refuse_driver(); }
void KernelModule::start(Stream&, const std::string&, const LaunchShape&, std::string_view) { refuse_driver(); }
void KernelModule::set_attribute(const std::string&, int, int) { refuse_driver(); }
int KernelModule::occupancy(const std::string&, int, Bytes) { refuse_driver(); }
Region KernelModule::variable(const std::string&, Place) { refuse_driver(); }

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
  const Made& made = *code_of(number);
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

KernelFacts ClientKernels::find(std::uint64_t kernel, std::uint64_t code, const std::string& name) {
  if (found_.size() == most_found || found_.contains(kernel))
    throw Error(ErrorKind::invalid_input,
                "there is a kernel " + std::to_string(kernel) + " already, or there are " + std::to_string(most_found));
  const auto made = code_of(code);
  KernelFacts facts = made->module->facts(name);
  found_.emplace(kernel, std::pair(made, name));
  return facts;
}

std::pair<KernelModule*, std::string> ClientKernels::named(std::uint64_t kernel) const {
  const auto found = found_.find(kernel);
  if (found == found_.end()) throw Error(ErrorKind::invalid_input, "there is no kernel " + std::to_string(kernel));
  return {found->second.first->module.get(), found->second.second};
}

std::shared_ptr<KernelModule> ClientKernels::module(std::uint64_t code) const { return code_of(code)->module; }

std::shared_ptr<const ClientKernels::Made> ClientKernels::code_of(std::uint64_t code) const {
  const auto found = numbered_.find(code);
  if (found == numbered_.end()) throw Error(ErrorKind::invalid_input, "there is no code " + std::to_string(code));
  return found->second;
}

}  // namespace waywiser
