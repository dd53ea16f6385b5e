#include "waywiser/base/loaded_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>

namespace waywiser {
namespace {

// How many libraries this process has loaded since it began.
unsigned long long loads() {
  unsigned long long count = 0;
  const auto note = [](dl_phdr_info* any, std::size_t, void* into) {
    *static_cast<unsigned long long*>(into) = any->dlpi_adds;
    return 1;  // each tells the same
  };
  ::dl_iterate_phdr(note, &count);
  return count;
}

}  // namespace

bool LoadedLibrary::is_loaded() {
  if (found_.load(std::memory_order_relaxed)) return true;
  const unsigned long long now = loads();
  if (loads_without_.load(std::memory_order_relaxed) == now) return false;
  ++searches_;
  if (void* const library = ::dlopen(name_.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
    ::dlclose(library);
    found_ = true;
    return true;
  }
  loads_without_ = now;
  return false;
}

}  // namespace waywiser
