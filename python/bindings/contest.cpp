#include "waywiser/measure/contest.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "waywiser/measure/disturbance.hpp"
#include "waywiser/measure/profile_fields.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

constexpr std::uint64_t order = 1;  // the same at all ranks that time together

// What is timed is a Python function.
class PyContest final : public Contest {
 public:
  PyContest(nb::callable take, nb::object clock, const TurnLength& turn)
      : Contest(turn, order), take_(std::move(take)), clock_(std::move(clock)) {}
  Seconds now() const override { return clock_.is_none() ? now_seconds() : nb::cast<double>(clock_()); }

 private:
  std::vector<Sample> take(std::size_t which, int repetitions) override {
    const Disturbance disturbance;
    const nb::object answer = take_(which, repetitions, !looking());
    if (answer.is_none()) return {{.failed = "it is not offered"}};
    std::vector<Sample> samples;
    for (const double seconds : nb::cast<std::vector<double>>(answer)) samples.push_back({.seconds = seconds});
    if (!samples.empty()) samples.back().disturbed = disturbance.disturbed();
    return samples;
  }

  nb::callable take_;
  nb::object clock_;
};

std::vector<Contender> contest(std::size_t count, nb::callable take, int least, int most, double seconds, double aim,
                               int most_repetitions, int looks, double hopeless, nb::object clock) {
  PyContest contest(std::move(take), std::move(clock), {aim, most_repetitions, looks});
  const Seconds begun = contest.now();
  for (std::size_t i = 0; i < count; ++i) contest.enter();
  const Effort effort{.least = least,
                      .most = most,
                      .precision = 0,
                      .share = seconds - (contest.now() - begun),
                      .hopeless = hopeless,
                      .judged_from = 1};
  contest.run(effort, [] { return true; });
  return contest.contenders();
}

}  // namespace

void bind_contest(nb::module_& m) {
  nb::class_<Contender>(m, "Contender", "One of those that `contest` has timed.")
      .def_ro("samples", &Contender::samples, "Seconds, in the order of time.")
      .def_ro("repetitions", &Contender::repetitions, "Of a turn.")
      .def_ro("disturbed", &Contender::disturbed, "Samples that something from outside disturbed.")
      .def_prop_ro("offered", [](const Contender& self) { return !self.failed.has_value(); })
      .def_prop_ro("median", &Contender::typical)
      .def(
          "point", [](const Contender& self, Bytes bytes) { return to_json(make_point(self, bytes, true)).dump(); },
          "bytes"_a, "JSON: the point of a profile, for verified transfers of so many bytes.");
  m.def("contest", contest, "count"_a, "take"_a, nb::kw_only(), "least"_a, "most"_a, "seconds"_a = 0.0, "aim"_a = 0.0,
        "most_repetitions"_a = 1, "looks"_a = 4, "hopeless"_a = 0.0, "clock"_a.none() = nb::none(),
        "Times `count` ways in interleaved rounds, at least and at most so many, else until `seconds` have passed by "
        "`clock`. take(which, repetitions, counts) returns seconds of a repetition, one or several samples, or None if "
        "it is not offered; what it raises ends the contest. Without `counts` it warms up, and its time tells how many "
        "repetitions take `aim` seconds. Who takes `hopeless` times as long as the best has no further turns.");
}
