#pragma once

#include <optional>

#include "waywiser/base/units.hpp"

namespace waywiser {

// When the last copy that went without the resident kernel ended.
class LastCopy {
 public:
  // Whether one that begins now follows it soon.
  bool follows(Seconds now, Seconds soon) const { return at_ && now - *at_ < soon; }
  void ended(Seconds now) { at_ = now; }
  void forget() { at_.reset(); }

 private:
  std::optional<Seconds> at_;
};

}  // namespace waywiser
