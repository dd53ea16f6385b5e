// Jacobi iterations for Laplace's equation on a grid that is cut into boxes, the classic program for several GPUs:
//   waywiser run -n 2 build/apps/jacobi --size 2048x2048
#include "apps/jacobi/jacobi.hpp"

#include "apps/comparison.hpp"
#include "apps/program.hpp"

namespace apps {
namespace {

template <typename T>
void run(waywiser::Group& group, const Options& options) {
  const std::vector<std::int64_t> size = options.shape("size", 2, 1, 1 << 20);
  const int threads = static_cast<int>(options.integer("threads", 1, 1024));
  Comparison comparison(group, options, true);
  const auto solver_of = [&](waywiser::Group& ranks) {
    return Jacobi<T>(ranks, cut(ranks, size, {1, 1}, {true, false}, options), threads, comparison.steps());
  };
  Jacobi<T> solver = solver_of(group);
  std::vector<T> undivided;
  if (options.choice("undivided", {"no", "yes"}) == "yes") {
    std::optional<waywiser::Group> alone = group.split(group.rank());
    Jacobi<T> whole = solver_of(*alone);
    whole.reset();
    whole.steps(comparison.steps());
    undivided = part_of(whole.values(), size, solver.box());
  }
  comparison.run({"jacobi: " + text_of(size) + " " + options.text("type") + ", boxes of up to " +
                      text_of(solver.grid().boxes.front().count),
                  [&](const Way& way) { solver.use(way); }, [&] { return solver.variant(); }, [&] { solver.reset(); },
                  [&](std::int64_t steps) { solver.steps(steps); },
                  [&] { return undivided.empty() || undivided == solver.values() ? solver.error() : differs; },
                  Jacobi<T>::tolerance(comparison.steps())});
}

}  // namespace
}  // namespace apps

int main(int count, char** words) {
  using namespace apps;
  const Options options("jacobi", with_usual_options({{"size", "2048x2048", "rows x columns of the grid"},
                                                      {"type", "float32", "of the values: float32, float64"},
                                                      {"parts", "auto", "boxes of ranks, as 2x1; auto: by the size"},
                                                      {"undivided", "no", "yes: compare with the whole grid at once"},
                                                      fused_option()}));
  return run_program(count, words, options, [](waywiser::Group& group, const Options& given) {
    given.choice("type", {"float32", "float64"}) == "float32" ? run<float>(group, given) : run<double>(group, given);
  });
}
