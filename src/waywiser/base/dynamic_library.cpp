#include "waywiser/base/dynamic_library.hpp"

#include <dlfcn.h>

namespace waywiser {

DynamicLibrary::DynamicLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      why_not_.clear();
      return;
    }
    if (const char* reason = ::dlerror(); why_not_.empty() && reason != nullptr) why_not_ = reason;
  }
}

void* DynamicLibrary::address(const char* symbol) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

}  // namespace waywiser
