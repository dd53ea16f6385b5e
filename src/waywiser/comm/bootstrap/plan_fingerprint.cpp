#include "waywiser/comm/bootstrap/plan_fingerprint.hpp"

#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

std::string plan_fingerprint(const Chooser& chooser) {
  FingerprintHash hash;
  hash.add(to_json(chooser.plan()).dump(-1, ' ', false, Json::error_handler_t::replace));
  return hash.hexadecimal();
}

}  // namespace waywiser
