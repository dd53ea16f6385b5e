#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>

#include "bindings/bindings.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/bench/bench_rank.hpp"
#include "waywiser/bench/coalescing.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/message/host_message_sizes.hpp"
#include "waywiser/measure/platform_choice.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

BenchRank join_bench(const std::string& backend, int gpus) {
  const nb::gil_scoped_release released;
  PlatformChoice choice;
  choice.backend = backend;
  choice.machine.gpus = gpus;
  JoinOptions options;
  options.platform = open_platform(choice);
  return BenchRank(options);
}

// One size for all ranks of one machine.
std::vector<std::string> host_ways(const std::string& operation, int ranks) {
  if (operation == "message") return {host_message_ways().begin(), host_message_ways().end()};
  CollectiveCall call;
  call.operation = parse_collective(operation);
  call.ranks = ranks;
  call.count = 1024;
  std::vector<std::string> names;
  for (const CollectiveAlgorithm& row : algorithms())
    if (row.operation == call.operation && !row.kernel && !row.why_unavailable(call)) names.emplace_back(row.name);
  return names;
}

// A machine's memories, and the pair of them that is measured.
class PyCoalescedCopies {
 public:
  PyCoalescedCopies(const std::string& backend, int gpus) {
    PlatformChoice choice;
    choice.backend = backend;
    choice.machine.gpus = gpus;
    platform_ = open_platform(choice);
  }
  void open(const std::string& source, const std::string& destination, Bytes largest) {
    const Place from = checked(parse_place(source)), to = checked(parse_place(destination));
    const nb::gil_scoped_release released;
    copies_.reset();
    copies_.emplace(*platform_, from, to, largest);
  }
  // Percent of speed gained, its interval; seconds apart and gathered; samples of each.
  std::tuple<double, double, double, double, double, int> measure(Bytes block, int blocks, double seconds) {
    if (!copies_) throw Error(ErrorKind::invalid_input, "coalescing: no pair of memories is open");
    const nb::gil_scoped_release released;
    const CoalescingTimes times = copies_->measure(block, blocks, seconds);
    return {times.change.median, times.change.interval.low, times.change.interval.high,
            times.apart.median,  times.gathered.median,     times.apart.samples};
  }

 private:
  Place checked(Place place) const {
    if (place.is_gpu() && place.index >= platform_->gpu_count())
      throw Error(ErrorKind::unavailable,
                  text(place) + ": there are " + std::to_string(platform_->gpu_count()) + " GPUs");
    return place;
  }

  std::unique_ptr<Platform> platform_;
  std::optional<CoalescedCopies> copies_;
};

}  // namespace

void bind_bench(nb::module_& m) {
  nb::class_<BenchRank>(m, "BenchRank", "One rank of a benchmark, in a job that a launcher has started.")
      .def_prop_ro("rank", &BenchRank::rank)
      .def_prop_ro("size", &BenchRank::size)
      .def_prop_ro("backend", &BenchRank::backend)
      .def(
          "run", [](BenchRank& self, const std::string& request) { return self.run(parse_bench_request(request)); },
          "request"_a, nb::call_guard<nb::gil_scoped_release>(), "Seconds of a call, for each sample. Raises Error.")
      .def("share", &BenchRank::share, "text"_a, nb::call_guard<nb::gil_scoped_release>(), "What rank 0 says.")
      .def("collect", &BenchRank::collect, "values"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Rank 0 gets the values of all.");
  nb::class_<PyCoalescedCopies>(m, "CoalescedCopies", "Times blocks copied one by one, and gathered.")
      .def(nb::init<const std::string&, int>(), "backend"_a, "gpus"_a)
      .def("open", &PyCoalescedCopies::open, "source"_a, "destination"_a, "largest"_a)
      .def("measure", &PyCoalescedCopies::measure, "block"_a, "blocks"_a, "seconds"_a);
  m.def("host_ways", host_ways, "operation"_a, "ranks"_a,
        "The algorithms of a collective that serve so many ranks of one machine; of \"message\" the ways within a "
        "machine.");
  m.def("launched_ranks", [] { return read_launch().size; }, "Ranks of the job that this process belongs to; 1: none.");
  m.def("why_no_cuda", [] { return why_no_cuda().value_or(""); }, "Why there is no GPU; empty when there is one.");
  m.def("join_bench", join_bench, "backend"_a, "gpus"_a, "Becomes a rank of the job that the launcher started.");
}
