// The exchange of a mixture of experts: each token goes to the ranks of its experts, what they make of it comes back
// and is added up. By kernels that put, signal and wait themselves, beside two all-to-alls with packing of their own:
//   waywiser run -n 2 build/apps/moe_dispatch --tokens 256 --hidden 512
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/moe_dispatch/one_sided_layer.hpp"
#include "apps/moe_dispatch/packed_layer.hpp"
#include "apps/program.hpp"

namespace apps {
namespace {

constexpr const char* note() {
#if defined(APPS_VIRTUAL_GPUS)
  return "virtual GPUs (their times say nothing about GPUs)";
#elif defined(__CUDACC__)
  return "GPUs";
#else
  return "in host memory";
#endif
}

double largest_of(waywiser::Group& group, double value) {
  group.all_reduce(std::span(&value, 1), std::span(&value, 1), waywiser::ReduceOp::max);
  return value;
}

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// A way to exchange: one step, and the wait for all steps so far.
struct MoeWay {
  std::string name, why_unavailable;
  std::function<void()> step, wait;
  std::vector<double> seconds;  // of a step, in each round, at the slowest rank
};

class MoeProgram {
 public:
  MoeProgram(waywiser::Group& group, const Options& options)
      : group_(group),
        processor_(group, static_cast<int>(options.integer("threads", 1, 1024))),
        layer_(layer_of(group, options)),
        routes_(routes_of(layer_, layer_.rank)),
        tokens_(processor_, layer_.tokens * layer_.vectors()),
        results_(processor_, tokens_.size()),
        routes_there_(processor_, layer_.tokens),
        blocks_(static_cast<unsigned>(options.integer("blocks", 0, 1024))),
        rounds_(options.integer("rounds", 1, 1000)),
        steps_(options.integer("steps", 1, 1 << 20)),
        json_(options.choice("format", {"table", "json"}) == "json") {
    tokens_.assign(tokens_of(layer_));
    routes_there_.assign(routes_);
    make_ways(options.choice("way", {"all", "one_sided", "all_to_all", "nccl", "none"}));
  }

  void run() {
    for (std::int64_t round = -1; round < rounds_; ++round)  // the first one warms up
      for (MoeWay& way : ways_)
        if (way.why_unavailable.empty()) one(way, round);
    if (one_sided_) time_halves();
    if (group_.rank() == 0) json_ ? print_json() : print_table();
    group_.barrier();  // nobody accesses a heap any more
  }

 private:
  static ExpertLayer layer_of(const waywiser::Group& group, const Options& options) {
    ExpertLayer layer;
    layer.ranks = group.size();
    layer.rank = group.rank();
    layer.tokens = options.integer("tokens", 1, 1 << 20);
    layer.hidden = options.integer("hidden", 8, 1 << 20);
    layer.experts = static_cast<int>(options.integer("experts", 1, 4096));
    layer.top = static_cast<int>(options.integer("top", 1, most_top));
    if (layer.hidden % 8 != 0) refuse("--hidden: a multiple of 8");
    if (layer.ranks > 64) refuse("64 ranks are the most");
    if (layer.experts % layer.ranks != 0 || layer.top > layer.experts)
      refuse("--experts " + std::to_string(layer.experts) + ": each of " + std::to_string(layer.ranks) +
             " ranks has as many, and there are at least --top");
    return layer;
  }

  void make_ways(const std::string& wanted) {
    const auto add = [&](const std::string& name, const auto& make) {
      if (wanted != "all" && wanted != name) return;
      ways_.push_back({name, {}, {}, {}, {}});
      try {
        make(ways_.back());
      } catch (const waywiser::Error& error) {
        if (error.kind() != waywiser::ErrorKind::unavailable || wanted != "all") throw;
        ways_.back().why_unavailable = error.what();
      }
    };
    add("one_sided", [&](MoeWay& way) {
      one_sided_.emplace(group_, processor_, layer_, blocks_);
      way.step = [this] { one_sided_->step(tokens_.data(), routes_there_.data(), results_.data()); };
      way.wait = [this] { one_sided_->wait(); };
    });
    const auto packed = [&](std::optional<PackedLayer>& layer, PackedLayer::By by, MoeWay& way) {
      layer.emplace(group_, processor_, layer_, by);
      way.step = [this, &layer] { layer->step(tokens_.data(), results_.data()); };
      way.wait = [&layer] { layer->wait(); };
    };
    add("all_to_all", [&](MoeWay& way) { packed(by_library_, PackedLayer::By::library, way); });
    add("nccl", [&](MoeWay& way) {
#if !defined(__CUDACC__)
      throw waywiser::Error(waywiser::ErrorKind::unavailable, "it needs GPUs");
#endif
      packed(by_nccl_, PackedLayer::By::nccl, way);
    });
    if (wanted == "none") ways_.push_back({wanted, {}, [] {}, [] {}, {}});
  }

  void one(MoeWay& way, std::int64_t round) {
    results_.assign(std::vector<Eight>(static_cast<std::size_t>(results_.size())));
    group_.barrier();
    const double begin = now();
    for (std::int64_t step = 0; step < steps_; ++step) way.step();
    way.wait();
    const double seconds = largest_of(group_, now() - begin) / static_cast<double>(steps_);
    check_results(way.name);
    if (round >= 0) way.seconds.push_back(seconds);
  }
  // Throws corrupt at all ranks.
  void check_results(const std::string& way) {
    if (largest_of(group_, static_cast<double>(wrong_numbers(layer_, routes_, results_.values()))) != 0)
      throw waywiser::Error(waywiser::ErrorKind::corrupt, "the result of " + way + " is wrong");
  }
  // How long dispatch and combine take, each at the slowest rank; on a GPU by events, which cost a little themselves.
  void time_halves() {
    results_.assign(std::vector<Eight>(static_cast<std::size_t>(results_.size())));
    group_.barrier();
    Marks marks(processor_);
    for (std::int64_t step = 0; step < steps_; ++step) {
      marks.set();
      one_sided_->dispatch(tokens_.data(), routes_there_.data(), results_.data());
      marks.set();
      one_sided_->combine();
    }
    marks.set();
    one_sided_->wait();
    check_results("one_sided");
    std::vector<double> halves[2];
    for (std::int64_t i = 0; i < 2 * steps_; ++i) halves[i % 2].push_back(marks.seconds(static_cast<std::size_t>(i)));
    dispatch_ = largest_of(group_, middle_of(halves[0]));
    combine_ = largest_of(group_, middle_of(halves[1]));
  }
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  // There and back, of the rank that gives most.
  double bytes() { return 2 * static_cast<double>(rows_to_others(layer_, routes_) * layer_.hidden) * sizeof(Bfloat16); }
  void print_table() {
    std::printf(
        "moe_dispatch: %lld tokens of %lld bfloat16 a rank, the best %d of %d experts\n%d ranks, %s; median of "
        "%lld rounds of %lld steps, at the slowest rank; rank 0 gives %.1f MB to others in a step\n\n",
        static_cast<long long>(layer_.tokens), static_cast<long long>(layer_.hidden), layer_.top, layer_.experts,
        layer_.ranks, note(), static_cast<long long>(rounds_), static_cast<long long>(steps_), bytes() / 1e6);
    std::printf("%-12s %12s %10s\n", "way", "us a step", "GB/s");
    for (const MoeWay& way : ways_)
      if (way.why_unavailable.empty())
        std::printf("%-12s %12.1f %10.1f\n", way.name.c_str(), 1e6 * middle_of(way.seconds),
                    bytes() / middle_of(way.seconds) / 1e9);
      else
        std::printf("%-12s unavailable: %s\n", way.name.c_str(), way.why_unavailable.c_str());
    if (one_sided_) std::printf("one_sided: dispatch %.1f us, combine %.1f us\n", 1e6 * dispatch_, 1e6 * combine_);
    std::printf("\nevery result is right\n");
  }
  void print_json() {
    std::printf(
        "{\"tokens\": %lld, \"hidden\": %lld, \"experts\": %d, \"top\": %d, \"ranks\": %d, \"place\": \"%s\", "
        "\"bytes\": %.0f, \"rows\": [",
        static_cast<long long>(layer_.tokens), static_cast<long long>(layer_.hidden), layer_.experts, layer_.top,
        layer_.ranks, note(), bytes());
    const char* separator = "";
    for (const MoeWay& way : ways_) {
      if (!way.why_unavailable.empty()) continue;
      std::printf("%s{\"way\": \"%s\", \"seconds\": %.9g", separator, way.name.c_str(), middle_of(way.seconds));
      if (way.name == "one_sided")
        std::printf(", \"dispatch_seconds\": %.9g, \"combine_seconds\": %.9g", dispatch_, combine_);
      std::printf("}");
      separator = ", ";
    }
    std::printf("]}\n");
  }

  waywiser::Group& group_;
  Processor processor_;
  const ExpertLayer layer_;
  const std::vector<Route> routes_;
  Array<Eight> tokens_, results_;
  Array<Route> routes_there_;
  const unsigned blocks_;
  const std::int64_t rounds_, steps_;
  const bool json_;
  double dispatch_ = 0, combine_ = 0;  // seconds
  std::optional<OneSidedLayer> one_sided_;
  std::optional<PackedLayer> by_library_, by_nccl_;
  std::vector<MoeWay> ways_;
};

}  // namespace
}  // namespace apps

int main(int count, char** words) {
  using namespace apps;
  const Options options("moe_dispatch", {{"tokens", "4096", "tokens of each rank"},
                                         {"hidden", "7168", "numbers of a token"},
                                         {"experts", "64", "experts of all ranks together"},
                                         {"top", "8", "experts of each token, at most 8"},
                                         {"way", "all", "all, one_sided, all_to_all, nccl; none: nothing is exchanged"},
                                         {"blocks", "0", "that give rows back, twice as many that give them; 0: 64"},
                                         {"rounds", "5", "how often each way is timed, in turn with the others"},
                                         {"steps", "50", "steps of each round"},
                                         {"threads", "1", "threads of each rank, on hosts"},
                                         {"format", "table", "table, or json: one line, for programs"}});
  return run_program(count, words, options,
                     [](waywiser::Group& group, const Options& given) { MoeProgram(group, given).run(); });
}
