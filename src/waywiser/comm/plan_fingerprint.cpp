#include "waywiser/comm/plan_fingerprint.hpp"

#include "waywiser/comm/sha256.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

std::string plan_fingerprint(const Chooser& chooser) {
  constexpr std::size_t shown_bytes = 6;
  const std::string text = to_json(chooser.plan()).dump(-1, ' ', false, Json::error_handler_t::replace);
  const Digest digest = sha256(std::as_bytes(std::span(text)));
  return hexadecimal(std::span(digest).first(shown_bytes));
}

}  // namespace waywiser
