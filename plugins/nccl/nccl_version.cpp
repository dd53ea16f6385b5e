#include "nccl_version.hpp"

#include <dlfcn.h>

namespace waywiser_nccl {
namespace {

using GetVersion = Result (*)(int*);

// Programs may have opened the library for themselves alone, so that only its handle finds the function.
GetVersion find_in_library(LogFunction log) {
  Dl_info about{};
  if (log == nullptr || dladdr(reinterpret_cast<void*>(log), &about) == 0 || about.dli_fname == nullptr) return nullptr;
  void* const library = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto found = reinterpret_cast<GetVersion>(dlsym(library, "ncclGetVersion"));
  dlclose(library);
  return found;
}

}  // namespace

std::string version_of(LogFunction log) {
  GetVersion get = find_in_library(log);
  if (get == nullptr) get = reinterpret_cast<GetVersion>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int code = 0;
  if (get == nullptr || get(&code) != success) return {};
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

}  // namespace waywiser_nccl
