#include "waywiser/policy/explain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

std::string question_text(const Question& question) {
  return pair_text({{}, question.source, question.destination, question.processes, {}});
}

const PairClass& class_of(const Profile& profile, const Question& question) {
  const std::pair pair(question.source, question.destination);
  for (const PairClass& entry : profile.classes)
    if (entry.processes == question.processes && std::count(entry.members.begin(), entry.members.end(), pair))
      return entry;
  throw Error(ErrorKind::invalid_input, "the profile has nothing about " + question_text(question));
}

// Beyond the largest measured size: at the rate of that size. Below the smallest: its time.
Seconds predict(const Cost& cost, double bytes) {
  const Point& first = cost.points().front();
  const Point& last = cost.points().back();
  if (bytes > static_cast<double>(last.bytes)) return last.seconds * bytes / static_cast<double>(last.bytes);
  return cost.seconds(std::max(bytes, static_cast<double>(first.bytes)));
}

const Point* measured_at(const Cost& cost, Bytes bytes) {
  for (const Point& point : cost.points())
    if (point.bytes == bytes) return &point;
  return nullptr;
}

std::string ratio_text(double ratio) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f times the time of the chosen path", ratio);
  return text;
}

class Explanation {
 public:
  Explanation(const Profile& profile, const Plan& plan, const Question& question, const MechanismOrder& order)
      : profile_(profile),
        question_(question),
        pair_class_(class_of(profile, question)),
        all_(candidates(profile, pair_class_, question.operation, order, question.rail)),
        encrypted_(candidates(profile, pair_class_, question.operation, order, question.rail, true)),
        chooser_(plan) {
    row_ = chooser_.choose(question.source, question.destination, question.processes, question.operation,
                           question.bytes, question.rail);
    for (std::size_t i = 0; row_ != nullptr && i < all_.series.size(); ++i)
      if (all_.series[i]->path == row_->path()) chosen_ = i;
    encrypted_row_ = chooser_.choose(question.source, question.destination, question.processes, question.operation,
                                     question.bytes, question.rail, true);
  }

  Json answer() const {
    return {{"pair", question_text(question_)},
            {"class", pair_class_.name},
            {"operation", name(question_.operation)},
            {"bytes", question_.bytes},
            {"simulated", profile_.simulated},
            {"pairs_at_once", pairs_at_once()},
            {"chosen", row_ == nullptr ? Json(nullptr) : Json(label(here(row_->path())))},
            {"why", row_ == nullptr ? "the plan has no path for this size" : row_->why},
            {"candidates", candidates_json()},
            {"unavailable", unavailable_json()},
            {"searched", searched_json()}};
  }

 private:
  double bytes() const { return static_cast<double>(question_.bytes); }
  Path here(const Path& path) const { return for_pair(path, question_.source, question_.destination); }

  // For `loaded`, if it was measured and the profile says so.
  Json pairs_at_once() const {
    for (const Series* series : all_.series)
      if (series->pairs != 0) return series->pairs;
    return nullptr;
  }

  const Rejected* rejection(const Series& series) const {
    for (const Rejected& entry : profile_.rejected)
      if (entry.path == series.path && entry.operation == series.operation && entry.bytes <= question_.bytes)
        return &entry;
    return nullptr;
  }

  // The fastest first; those that are not chosen from among them.
  Json candidates_json() const {
    std::vector<std::pair<Seconds, Json>> found;
    const auto add = [&](const Series& series, const Cost& cost, const std::function<std::string(double)>& why) {
      if (rejection(series) == nullptr) found.emplace_back(predict(cost, bytes()), candidate(series, cost, why));
    };
    for (std::size_t i = 0; i < all_.series.size(); ++i)
      add(*all_.series[i], all_.costs[i], [&](double ratio) { return why(i, ratio); });
    for (std::size_t i = 0; i < encrypted_.series.size(); ++i)
      add(*encrypted_.series[i], encrypted_.costs[i],
          [&](double ratio) { return why_not_encrypted(*encrypted_.series[i], ratio); });
    std::ranges::stable_sort(found, {}, &std::pair<Seconds, Json>::first);
    Json list = Json::array();
    for (auto& [seconds, one] : found) list.push_back(std::move(one));
    return list;
  }

  Json candidate(const Series& series, const Cost& cost, const std::function<std::string(double)>& why) const {
    const Seconds predicted = predict(cost, bytes());
    const double rate = bytes() / predicted;
    const Point* point = measured_at(cost, question_.bytes);
    const double ratio = chosen_ ? predicted / predict(all_.costs[*chosen_], bytes()) : NAN;
    return {
        {"label", label(here(series.path))},
        {"path", to_json(here(series.path))},
        {"measured", point == nullptr ? Json(nullptr)
                                      : Json{{"seconds", point->seconds}, {"low", point->low}, {"high", point->high}}},
        {"predicted", predicted},
        {"rate", rate},
        {"percent_of_limit", series.limit > 0 ? Json(100 * rate / series.limit) : Json(nullptr)},
        {"ratio", std::isfinite(ratio) ? Json(ratio) : Json(nullptr)},
        {"why", why(ratio)}};
  }

  std::string why_not_encrypted(const Series& series, double ratio) const {
    const bool best = encrypted_row_ != nullptr && encrypted_row_->path() == series.path;
    const std::string when =
        best ? "taken where a job encrypts" : "it encrypts, but another mechanism that encrypts is faster";
    return std::isfinite(ratio) ? when + "; " + ratio_text(ratio) : when;
  }

  std::string why(std::size_t i, double ratio) const {
    if (chosen_ == i) return row_->why;
    if (!all_.costs[i].known(bytes())) return "not measured at this size";
    if (!chosen_) return "the plan has no path for this size";
    if (overlap(all_.costs[i].interval(bytes()), all_.costs[*chosen_].interval(bytes())))
      return "equal to the chosen path within the confidence intervals" +
             std::string(i > *chosen_ ? "; the earlier mechanism is taken" : "");
    if (ratio < 1) return ratio_text(ratio) + ": too little for a switch";
    return ratio_text(ratio);
  }

  bool about_this(const Path& path) const {
    const auto& [source, destination] = pair_class_.members.front();
    return path.source == source && path.destination == destination && path.processes == pair_class_.processes;
  }

  Json unavailable_json() const {
    Json list = Json::array();
    for (const Unavailable& entry : profile_.unavailable)
      if (about_this(entry.path)) list.push_back({{"label", label(here(entry.path))}, {"reason", entry.reason}});
    for (const Rejected& entry : profile_.rejected)
      if (about_this(entry.path) && entry.operation == all_.measured_as && entry.bytes <= question_.bytes)
        list.push_back({{"label", label(here(entry.path))},
                        {"reason", "rejected from " + format_bytes(entry.bytes) + " on: " + entry.reason}});
    return list;
  }

  Json searched_json() const {
    Json list = Json::array();
    for (const Series& series : profile_.searched)
      if (about_this(series.path) && series.operation == all_.measured_as)
        for (const Point& point : series.points)
          list.push_back({{"label", label(here(series.path))}, {"bytes", point.bytes}, {"seconds", point.seconds}});
    return list;
  }

  const Profile& profile_;
  const Question& question_;
  const PairClass& pair_class_;
  Candidates all_, encrypted_;
  Chooser chooser_;
  const PlanRow *row_ = nullptr, *encrypted_row_ = nullptr;
  std::optional<std::size_t> chosen_;
};

}  // namespace

Json explain(const Profile& profile, const Plan& plan, const Question& question, const MechanismOrder& order) {
  return Explanation(profile, plan, question, order).answer();
}

}  // namespace waywiser
