#include "waywiser/base/profiler_range.hpp"

#include <cstdio>
#include <optional>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/environment.hpp"

namespace waywiser {
namespace {

RangeFunctions open_nvtx() {
  if (environment("WAYWISER_NVTX") != "1") return {};
  const std::optional<std::string> given = library_override("nvtx");
  const DynamicLibrary library(given ? std::vector{*given}
                                     : std::vector<std::string>{"libnvtx3interop.so.1", "libnvToolsExt.so.1"});
  const RangeFunctions found{library.find<int(const char*)>("nvtxRangePushA"), library.find<int()>("nvtxRangePop")};
  if (found.push != nullptr && found.pop != nullptr) return found;
  std::fputs(
      ("waywiser: WAYWISER_NVTX=1, but there is no NVTX (the package nvidia-nvtx has it; WAYWISER_LIBNVTX names the "
       "library): " +
       (library.loaded() ? library.name() + " lacks its functions" : library.why_not()) + "\n")
          .c_str(),
      stderr);
  return {};
}

}  // namespace

const RangeFunctions* range_functions() {
  static const RangeFunctions functions = open_nvtx();
  return functions.push == nullptr ? nullptr : &functions;
}

}  // namespace waywiser
