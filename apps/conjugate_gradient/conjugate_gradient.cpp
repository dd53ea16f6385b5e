// Conjugate gradients for Poisson's equation, beside a version that is tuned by hand:
//   waywiser run -n 2 build/apps/conjugate_gradient --size 128
#include "apps/conjugate_gradient/conjugate_gradient.hpp"

#include <utility>

#include "apps/conjugate_gradient/optimised.hpp"
#include "apps/program.hpp"

namespace apps {
namespace {

constexpr double small_residual = 1e-11, tolerance = 1e-6;  // its condition number is about (2 n / pi)^2

// At all ranks, which have the same sums.
[[noreturn]] void throw_unsolved(double residual, std::int64_t steps) {
  char text[100];
  std::snprintf(text, sizeof text, "the equation is unsolved: the residual is %.3g after %lld steps", residual,
                static_cast<long long>(steps));
  throw NoResult(text);
}

template <typename Solver>
void run(waywiser::Group& group, const Options& options, const std::string& version) {
  const std::vector<std::int64_t> size = options.shape("size", 3, 1, 1 << 20);
  const int threads = static_cast<int>(options.integer("threads", 1, 1024));
  Comparison comparison(group, options, std::is_same_v<Solver, OptimisedGradient>);
  Solver solver(group, cut(group, size, {1, 1, 1}, {false, false, false}, options), threads);
  std::vector<double> undivided;
  if (options.choice("undivided", {"no", "yes"}) == "yes") {
    std::optional<waywiser::Group> alone = group.split(group.rank());
    Solver whole(*alone, cut(*alone, size, {1, 1, 1}, {false, false, false}, options), threads);
    whole.reset();
    whole.steps(comparison.steps());
    undivided = part_of(whole.solution(), size, solver.box());
  }
  const std::int64_t most = 20 * (size[0] + size[1] + size[2]) + 100;
  bool solved = false;
  const auto error = [&] {
    // The sums of ranks are added in another order; all else is the same.
    if (!undivided.empty()) return largest_difference(undivided, solver.solution());
    const double mismatch = largest_of_ranks(group, solver.mismatch());
    // To the end once: a large grid needs many steps, and how ranks exchange does not matter for that.
    if (!(mismatch <= tolerance) || std::exchange(solved, true)) return mismatch;
    for (std::int64_t more = 0; solver.residual() > small_residual && more < most; more += 10) solver.steps(10);
    if (!(solver.residual() <= small_residual)) throw_unsolved(solver.residual(), most);
    return std::max({mismatch, solver.mismatch(), solver.error()});
  };
  comparison.run({"conjugate_gradient: " + text_of(size) + " float64, " + version,
                  [&](const Way& way) { solver.use(way); }, [&] { return solver.variant(); }, [&] { solver.reset(); },
                  [&](std::int64_t steps) { solver.steps(steps); }, error, undivided.empty() ? tolerance : 1e-10});
}

}  // namespace
}  // namespace apps

int main(int count, char** words) {
  using namespace apps;
  const Options options("conjugate_gradient",
                        with_usual_options({{"size", "128", "cells of the grid, as 128 or 64x64x128"},
                                            {"version", "both", "simple, optimised, or both"},
                                            {"parts", "auto", "boxes of ranks, as 2x1x1; auto: by the size"},
                                            {"undivided", "no", "yes: compare with the whole grid at once"},
                                            fused_option()}));
  return run_program(count, words, options, [](waywiser::Group& group, const Options& given) {
    const std::string& version = given.choice("version", {"both", "simple", "optimised"});
    const bool only_fused = given.text("fused") == "only";  // which the simple one is not
    if (version != "optimised" && !only_fused) run<ConjugateGradient>(group, given, "simple");
    if (only_fused && version == "simple") refuse("--fused only: the simple version has no steps of one kernel");
    if (!only_fused && version == "both" && group.rank() == 0 && given.text("format") == "table") std::printf("\n");
    if (version != "simple") run<OptimisedGradient>(group, given, "optimised by hand");
  });
}
