#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"

namespace waywiser {

// NVIDIA's compiler of CUDA source at run time, opened by the names that the loader tries in this order.
class Nvrtc {
 public:
  // Throws unavailable with the loader's words.
  explicit Nvrtc(const std::vector<std::string>& names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});

  // PTX for a compute capability, as 90. The source is a stranger's: no file can be opened meanwhile, so it includes
  // none and learns of none. Throws invalid_input; its lines after the first are the compiler's; timeout, after which
  // nothing more is compiled; unavailable.
  std::string compile(const std::string& source, int capability, Seconds patience = 40) const;

 private:
  struct Library;

  std::shared_ptr<Library> library_;
};

}  // namespace waywiser
