#include "agreed_plan.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

namespace waywiser_nccl {
namespace {

// The machine is looked at once in a process.
const std::string& fingerprint_here() {
  static const std::string found = [] {
    char text[64];
    return std::string(ww_machine_fingerprint(text, sizeof text) == WW_OK ? text : "");
  }();
  return found;
}

void refuse(const std::string& why) {
  throw Refusal(why + "; `waywiser apply` hands all ranks one plan, NCCL_TUNER_PLUGIN=none does without");
}

struct Given {
  std::string hash, file;
};

Given given_to_this_rank() {
  const char* told = std::getenv("WAYWISER_NCCL_PLAN");
  const std::string text = told == nullptr ? "" : told;
  const std::size_t colon = text.find(':');
  if (text.empty()) refuse("this rank was given no hash of a plan: WAYWISER_NCCL_PLAN is not set");
  if (colon == 0 || colon == std::string::npos || colon + 1 == text.size())
    refuse("this rank was given no hash of a plan: WAYWISER_NCCL_PLAN is not HASH:FILE");
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

Plan agreed_plan() {
  const Given given = given_to_this_rank();
  ww_plan* opened = nullptr;
  if (ww_plan_open(given.file.c_str(), &opened) != WW_OK) refuse(ww_error_text());
  Plan plan(opened);
  ww_plan_facts facts;
  if (ww_plan_describe(opened, "NCCL", &facts) != WW_OK) refuse(ww_error_text());
  if (given.hash != facts.hash)
    refuse(given.file + ": its rows for NCCL have the hash " + facts.hash + ", and the job was given " + given.hash);
  if (facts.simulated != 0) throw NothingToSay(given.file + " comes from a simulation");
  if (fingerprint_here().empty()) refuse("what machine this is could not be found out");
  if (fingerprint_here() != facts.fingerprint)
    throw NothingToSay(given.file + " is for machines " + facts.fingerprint + ", and this is " + fingerprint_here());
  return plan;
}

void say(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "waywiser: NCCL: %s\n", text.c_str());
}

}  // namespace waywiser_nccl
