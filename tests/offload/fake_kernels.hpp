#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/offload/client_kernels.hpp"
#include "waywiser/offload/nvrtc.hpp"

namespace waywiser {

// What a client's kernels did, without a GPU of CUDA: the compiler is the fake libnvrtc, and a launch is only noted.
struct FakeKernels {
  std::vector<std::string> loaded;
  std::vector<std::pair<std::string, std::vector<KernelArgument>>> launched;
  std::string fails_with;                                    // of the next launch
  std::vector<std::pair<std::string, std::string>> started;  // with its parameters
  std::vector<int> attributes{1024, 0, 0};

  std::unique_ptr<KernelMaker> maker();
};

class FakeModule final : public KernelModule {
 public:
  explicit FakeModule(FakeKernels& noted) : noted_(noted) {}
  KernelParameters parameters(const std::string& kernel) override {
    if (kernel != "axpy") throw Error(ErrorKind::invalid_input, "the code has no kernel of this name");
    return {{"b64", false}, {"b32", false}};
  }
  void launch(Stream&, const std::string& kernel, const LaunchShape&,
              std::span<const KernelArgument> arguments) override {
    if (!noted_.fails_with.empty()) throw Error(ErrorKind::device, std::exchange(noted_.fails_with, ""));
    noted_.launched.emplace_back(kernel, std::vector(arguments.begin(), arguments.end()));
  }
  KernelFacts facts(const std::string& kernel) override {
    parameters(kernel);
    return {{{0, 8}, {8, 4}}, noted_.attributes};
  }
  void start(Stream&, const std::string& kernel, const LaunchShape&, std::string_view parameters) override {
    noted_.started.emplace_back(kernel, parameters);
  }
  void set_attribute(const std::string&, int attribute, int value) override {
    noted_.attributes.at(static_cast<std::size_t>(attribute)) = value;
  }
  int occupancy(const std::string&, int threads, Bytes shared) override {
    return threads / 100 + static_cast<int>(shared);
  }

 private:
  FakeKernels& noted_;
};

class FakeMaker final : public KernelMaker {
 public:
  explicit FakeMaker(FakeKernels& noted) : noted_(noted) {}
  std::string compile(const std::string& source) override { return Nvrtc({WAYWISER_FAKE_NVRTC}).compile(source, 90); }
  std::unique_ptr<KernelModule> load(const std::string& code) override {
    noted_.loaded.push_back(code);
    return std::make_unique<FakeModule>(noted_);
  }

 private:
  FakeKernels& noted_;
};

inline std::unique_ptr<KernelMaker> FakeKernels::maker() { return std::make_unique<FakeMaker>(*this); }

}  // namespace waywiser
