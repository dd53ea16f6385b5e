#include "plan_rates.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr int most_threads = 64;
constexpr std::size_t large = std::size_t{64} << 20;

// The machine is looked at once in a process.
const std::string& fingerprint_here() {
  static const std::string found = [] {
    std::array<char, 64> text{};
    return std::string(ww_machine_fingerprint(text.data(), text.size()) == WW_OK ? text.data() : "");
  }();
  return found;
}

std::string why_not(const ww_plan* plan) {
  ww_plan_facts facts{};
  if (ww_plan_describe(plan, nullptr, &facts) != WW_OK) return ww_error_text();
  if (facts.simulated != 0) return "it comes from a simulation";
  if (fingerprint_here() != facts.fingerprint)
    return std::string("it is for machines ") + facts.fingerprint + ", and this is " + fingerprint_here();
  return {};
}

// "host_copy(stores=temporal,threads=4)": 4.
int threads_of(const std::string& way) {
  const std::string word = "threads=";
  const std::size_t at = way.find(word);
  int threads = 1;
  if (at != std::string::npos) std::from_chars(way.data() + at + word.size(), way.data() + way.size(), threads);
  return std::clamp(threads, 1, most_threads);
}

}  // namespace

PlanRates::PlanRates(const std::string& file) {
  const char* given = std::getenv("WAYWISER_PLAN");
  if (file.empty() && (given == nullptr || *given == '\0')) return;
  ww_plan* opened = nullptr;
  const bool open = ww_plan_open(file.empty() ? nullptr : file.c_str(), &opened) == WW_OK;
  plan_.reset(opened);
  const std::string why = open ? why_not(opened) : ww_error_text();
  if (!why.empty()) {
    say("no plan: " + why);
    plan_.reset();
    return;
  }
  if (const auto expected = expect(large, 2)) threads_ = threads_of(expected->way);
}

std::optional<Expected> PlanRates::expect(std::size_t bytes, int processes) const {
  if (!plan_) return {};
  const ww_plan_key key{.operation = "latency",
                        .source = "host0",
                        .destination = "host0",
                        .rail = nullptr,
                        .processes = processes,
                        .memory = nullptr,
                        .ranks = 0,
                        .partner = nullptr};
  ww_plan_choice choice{};
  if (ww_plan_choose(plan_.get(), &key, bytes, &choice) != WW_OK || choice.seconds <= 0) return {};
  return Expected{choice.seconds, choice.way};
}

}  // namespace waywiser_nixl
