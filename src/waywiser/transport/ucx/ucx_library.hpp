#pragma once

#include <string>

#include "waywiser/transport/ucx/ucx_functions.hpp"

namespace waywiser {

// The libucp of this process, which choose_libucp() has chosen.
class UcxLibrary {
 public:
  explicit UcxLibrary(bool keeps_registrations);

  bool usable() const noexcept { return why_not_.empty(); }
  const std::string& why_not() const noexcept { return why_not_; }
  const std::string& path() const noexcept { return path_; }
  const std::string& version() const noexcept { return version_; }
  // "UCX 1.22.0 from /usr/lib/libucp.so.0"
  std::string text() const { return "UCX " + version_ + " from " + path_; }
  // Meaningful only when usable().
  const UcxFunctions& functions() const noexcept { return functions_; }

 private:
  void load(const std::string& name);

  std::string path_;
  std::string version_;
  std::string why_not_;
  UcxFunctions functions_;
};

// Opened at the first call; always the same afterwards. What the first call says: if UCX may keep registrations of
// memory with a network card, it replaces the functions of the C library and of CUDA that give memory back, which takes
// a second. A process whose ranks use no such card says false: if it uses one later, UCX keeps no registration, which
// is slower and never stale. UCX_MEM_MMAP_HOOK_MODE, UCX_MEM_CUDA_HOOK_MODE and UCX_MEMTYPE_CACHE of the user win.
const UcxLibrary& ucx_library(bool keeps_registrations = true);

}  // namespace waywiser
