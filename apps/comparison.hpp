#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "apps/exchange.hpp"
#include "apps/options.hpp"

namespace apps {

// What a program does when it compares ways to exchange: all ranks alike.
struct Compared {
  std::string title;                               // what is computed
  std::function<void(const Way&)> use;             // throws unavailable at all ranks
  std::function<waywiser::HaloVariant()> variant;  // that is in use
  std::function<void()> reset;                     // to the same beginning
  std::function<void(std::int64_t)> steps;         // computes so many steps, and waits for them
  std::function<double()> error;                   // of this rank's result
  double tolerance = 0;                            // of that error
};

struct ComparedRow {
  std::string name, why_unavailable;
  std::vector<Seconds> step;  // time per step of each round, at the slowest rank
  std::vector<double> share;  // of the time of a step, of each round: what the same step takes less without an exchange
};

inline double largest_of_ranks(waywiser::Group& group, double value) {
  group.all_reduce(std::span(&value, 1), std::span(&value, 1), waywiser::ReduceOp::max);
  return value;
}
inline double sum_of_ranks(waywiser::Group& group, double value) {
  group.all_reduce(std::span(&value, 1), std::span(&value, 1));
  return value;
}

// The error of a result that differs from the undivided computation.
inline constexpr double differs = std::numeric_limits<double>::infinity();

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return differs;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = a[i] - b[i] == a[i] - b[i] ? std::max(most, std::abs(a[i] - b[i])) : differs;
  return most;
}

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The options of every comparison.
inline std::vector<Options::Option> with_usual_options(std::vector<Options::Option> options) {
  options.push_back({"way", "all", "how to exchange: all, or whole_field, per_neighbor, packed, direct, ..."});
  options.push_back({"answers", "", "file that keeps what automatic has chosen, for the next run"});
  options.push_back({"rounds", "5", "how often each way is timed, in turn with the others"});
  options.push_back({"steps", "100", "time steps of each round"});
  options.push_back({"threads", "1", "threads of each rank, on hosts"});
  options.push_back({"format", "table", "table, or json: one line, for programs"});
  return options;
}

// Of programs that have all of a step in one kernel as well.
inline Options::Option fused_option() {
  return {"fused", "no", "yes: compare with exchanges within the kernel that computes, too; only: these alone"};
}

// The ways that the options name.
inline std::vector<Way> ways_of(const Options& options, bool can_be_fused) {
  const std::string fused = can_be_fused ? options.choice("fused", {"no", "yes", "only"}) : "no";
  if (fused == "only") return fused_ways();
  if (options.text("way") == "none") return {{Way::Kind::none}};
  std::vector<std::string> names = {"all", "none"};
  for (const Way& way : all_ways()) names.push_back(way.name());
  const std::string& wanted = options.choice("way", names);
  std::vector<Way> ways;
  for (const Way& way : all_ways())
    if (wanted == "all" || wanted == way.name()) ways.push_back(way);
  for (Way& way : ways)
    if (way.kind == Way::Kind::automatic) way.answers = options.text("answers");
  if (fused == "yes")
    for (const Way& way : fused_ways()) ways.push_back(way);
  return ways;
}

// Times `steps` by each way in turn, `rounds` times. Each result is checked after its time was taken; throws corrupt at
// all ranks if one is wrong.
class Comparison {
 public:
  Comparison(waywiser::Group& group, const Options& options, bool can_be_fused)
      : group_(group),
        ways_(ways_of(options, can_be_fused)),
        rounds_(options.integer("rounds", 1, 1000)),
        steps_(options.integer("steps", 1, 1 << 30)),
        json_(options.choice("format", {"table", "json"}) == "json") {}

  std::int64_t steps() const noexcept { return steps_; }

  // Rank 0 prints the answer.
  std::vector<ComparedRow> run(const Compared& compared) {
    std::vector<ComparedRow> rows;
    for (const Way& way : ways_) rows.push_back({way.name(), {}, {}, {}});
    double worst = 0;
    for (std::int64_t round = -1; round < rounds_; ++round) {  // round -1 warms up
      const Seconds without = time_of_steps(compared, {Way::Kind::none});
      for (std::size_t i = 0; i < ways_.size(); ++i)
        if (rows[i].why_unavailable.empty()) worst = std::max(worst, one(compared, ways_[i], round, without, rows[i]));
    }
    if (ways_.size() == 1 && !rows.front().why_unavailable.empty())
      throw waywiser::Error(waywiser::ErrorKind::unavailable, rows.front().name + ": " + rows.front().why_unavailable);
    if (group_.rank() == 0) json_ ? print_json(compared, rows, worst) : print_table(compared, rows, worst);
    return rows;
  }

 private:
  // All steps, at the slowest rank.
  Seconds time_of_steps(const Compared& compared, const Way& way) {
    compared.use(way);
    compared.reset();
    group_.barrier();
    const Seconds begin = now();
    compared.steps(steps_);
    return largest_of_ranks(group_, now() - begin);
  }
  // Returns the error of the result. `without`: the time of all steps without an exchange.
  double one(const Compared& compared, const Way& way, std::int64_t round, Seconds without, ComparedRow& row) {
    Seconds all = 0;
    try {
      all = time_of_steps(compared, way);
    } catch (const waywiser::Error& error) {
      if (error.kind() != waywiser::ErrorKind::unavailable) throw;
      row.why_unavailable = error.what();
      return 0;
    }
    if (way.kind == Way::Kind::automatic && round < 0)
      row.name += " (" + std::string(waywiser::name(compared.variant())) + ")";
    const double error = check(compared, row);
    if (round < 0) return error;
    row.step.push_back(all / static_cast<double>(steps_));
    row.share.push_back(std::max(0.0, 1 - without / all));
    return error;
  }
  double check(const Compared& compared, const ComparedRow& row) {
    const double error = largest_of_ranks(group_, compared.error());
    if (!(error <= compared.tolerance)) {
      char text[160];
      std::snprintf(text, sizeof text, "the result of %s is wrong: its error is %.3g, not at most %.3g",
                    row.name.c_str(), error, compared.tolerance);
      throw waywiser::Error(waywiser::ErrorKind::corrupt, text);
    }
    return error;
  }

  void print_table(const Compared& compared, const std::vector<ComparedRow>& rows, double worst) const {
    std::printf("%s\n%d rank%s, %s%s; median of %lld rounds of %lld steps, at the slowest rank\n\n",
                compared.title.c_str(), group_.size(), group_.size() == 1 ? "" : "s", place(), note(),
                static_cast<long long>(rounds_), static_cast<long long>(steps_));
    std::printf("%-26s %12s  %-25s %s\n", "way to exchange", "us a step", "(least to most)", "exchange");
    for (const ComparedRow& row : rows) {
      if (!row.why_unavailable.empty()) {
        std::printf("%-26s unavailable: %s\n", row.name.c_str(), row.why_unavailable.c_str());
        continue;
      }
      const auto [least, most] = std::ranges::minmax(row.step);
      char range[64];
      std::snprintf(range, sizeof range, "(%.1f to %.1f)", 1e6 * least, 1e6 * most);
      std::printf("%-26s %12.1f  %-25s %6.1f %%\n", row.name.c_str(), 1e6 * median(row.step), range,
                  100 * median(row.share));
    }
    std::printf("\nevery result is right: the largest error is %.3g, at most %.3g is allowed\n", worst,
                compared.tolerance);
  }
  void print_json(const Compared& compared, const std::vector<ComparedRow>& rows, double worst) const {
    std::printf("{\"title\": \"%s\", \"ranks\": %d, \"place\": \"%s\", \"virtual\": %s, \"error\": %.6g, \"rows\": [",
                compared.title.c_str(), group_.size(), place(), *note() ? "true" : "false", worst);
    const char* separator = "";
    for (const ComparedRow& row : rows) {
      if (!row.why_unavailable.empty()) continue;
      std::printf("%s{\"way\": \"%s\", \"seconds\": %.9g, \"share\": %.4f}", separator, row.name.c_str(),
                  median(row.step), median(row.share));
      separator = ", ";
    }
    std::printf("], \"unavailable\": {");
    separator = "";
    for (const ComparedRow& row : rows) {
      if (row.why_unavailable.empty()) continue;
      std::printf("%s\"%s\": \"%s\"", separator, row.name.c_str(), quoted(row.why_unavailable).c_str());
      separator = ", ";
    }
    std::printf("}}\n");
  }
  static std::string quoted(const std::string& text) {
    std::string made;
    for (const char each : text) {
      if (each == '"' || each == '\\') made += '\\';
      made += static_cast<unsigned char>(each) < ' ' ? ' ' : each;
    }
    return made;
  }
#if defined(APPS_VIRTUAL_GPUS)
  static const char* place() { return "virtual GPUs"; }
  static const char* note() { return " (their times say nothing about GPUs)"; }
#elif defined(__CUDACC__)
  static const char* place() { return "GPUs"; }
  static const char* note() { return ""; }
#else
  static const char* place() { return "in host memory"; }
  static const char* note() { return ""; }
#endif

  waywiser::Group& group_;
  std::vector<Way> ways_;
  std::int64_t rounds_, steps_;
  bool json_;
};

}  // namespace apps
