#pragma once

#include "tests/explorer/one_sided.hpp"

namespace waywiser {

// In place of the libucp of this process.
class UcxLibrary {
 public:
  const UcxFunctions& functions() const noexcept { return functions_; }

 private:
  UcxFunctions functions_ = explorer::functions_of_one_sided();
};

inline const UcxLibrary& ucx_library() {
  static const UcxLibrary library;
  return library;
}

}  // namespace waywiser
