#include "waywiser/comm/bootstrap/plan_fingerprint.hpp"

#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

std::string hash_of(const Plan& plan) {
  FingerprintHash hash;
  hash.add(to_json(plan).dump(-1, ' ', false, Json::error_handler_t::replace));
  return hash.hexadecimal();
}

}  // namespace

std::string plan_fingerprint(const Chooser& chooser) { return hash_of(chooser.plan()); }

std::string plan_fingerprint(const Plan& plan, std::string_view partner) {
  Plan part{.fingerprint = plan.fingerprint, .machine = {}, .backend = {}, .simulated = plan.simulated, .rows = {}};
  for (const PlanRow& row : plan.rows) {
    const std::string_view named = row.key.partner;
    if (named.substr(0, named.find(' ')) == partner) part.rows.push_back(row);
  }
  return hash_of(part);
}

}  // namespace waywiser
