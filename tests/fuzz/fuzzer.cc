// libFuzzer's entry points. WAYWISER_FUZZ_TARGET names the target. Not part of the tests: .cc.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.hpp"

namespace {

const waywiser::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("WAYWISER_FUZZ_TARGET");
  chosen = waywiser::fuzz::find_target(name == nullptr ? "" : name);
  if (chosen != nullptr) return 0;
  std::fputs("waywiser: WAYWISER_FUZZ_TARGET must be one of", stderr);
  for (const auto& target : waywiser::fuzz::targets()) std::fprintf(stderr, " %s", target.name.data());
  std::fputs("\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run(std::as_bytes(std::span(data, size)));
  return 0;
}
