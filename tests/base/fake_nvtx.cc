// An NVTX for tests: keeps the names of all ranges, and how many are open.
#include <string>

namespace {
std::string names;
int depth;
}  // namespace

extern "C" {

const char* fake_nvtx_names() { return names.c_str(); }
int fake_nvtx_depth() { return depth; }

int nvtxRangePushA(const char* name) {
  names += std::string(name) + "\n";
  return depth++;
}
int nvtxRangePop() { return --depth; }
}
