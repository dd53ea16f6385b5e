#include "waywiser/policy/verification_cases.hpp"

#include <algorithm>
#include <set>

#include "waywiser/measure/path_contest.hpp"
#include "waywiser/policy/candidates.hpp"

namespace waywiser {
namespace {

// 3, 5, 12, 20, 48, ...: between the powers of two.
std::vector<Bytes> sizes_between(Bytes least, Bytes most, bool quick) {
  std::vector<Bytes> sizes;
  for (int power = 0; power < 60; ++power) {
    if (quick && power % 2 == 1) continue;
    const Bytes unit = Bytes{1} << power;
    const Bytes size = (power / (quick ? 2 : 1)) % 2 == 0 ? 3 * unit : 2 * unit + unit / 2 + (power % 6 == 5 ? 1 : 0);
    if (size > least && size < most) sizes.push_back(size);
  }
  return sizes;
}

// Here the order of mechanisms does not matter: all take part.
MechanismOrder mechanism_names(const Profile& profile) {
  MechanismOrder order;
  for (const Series& series : profile.series) order.push_back(series.path.mechanism);
  return order;
}

VerificationCase make_case(const Candidates& all, Operation operation, Bytes bytes, const Path& chosen) {
  VerificationCase made{operation, bytes, chosen, {}, 0};
  for (std::size_t i = 0; i < all.series.size(); ++i) {
    const Seconds seconds = all.costs[i].seconds(static_cast<double>(bytes));
    if (!all.costs[i].known(static_cast<double>(bytes))) continue;
    made.expected += std::max(sample_aim(operation), seconds);
    if (!(all.series[i]->path == chosen)) made.others.push_back(all.series[i]->path);
  }
  return made;
}

void add_cases(std::vector<VerificationCase>& cases, const PairClass& pair_class, Operation operation,
               const Candidates& all, const Chooser& chooser, bool quick) {
  const auto& [source, destination] = pair_class.members.front();
  std::set<Bytes> used;
  for (const Cost& cost : all.costs)
    for (const Point& point : cost.points()) used.insert(point.bytes);
  if (used.empty()) return;
  for (const Bytes bytes : sizes_between(*used.begin(), *used.rbegin(), quick)) {
    const PlanRow* row = chooser.choose(source, destination, pair_class.processes, operation, bytes);
    if (row != nullptr && !used.contains(bytes)) cases.push_back(make_case(all, operation, bytes, row->path()));
  }
}

}  // namespace

std::vector<VerificationCase> verification_cases(const Profile& profile, const Chooser& chooser,
                                                 const CampaignOptions& options) {
  const MechanismOrder order = mechanism_names(profile);
  std::vector<VerificationCase> cases;
  for (const PairClass& pair_class : profile.classes)
    for (const Operation operation : operations) {
      const Candidates all = candidates(profile, pair_class, operation, order);
      if (!all.series.empty() && all.measured_as == operation)
        add_cases(cases, pair_class, operation, all, chooser, options.quick);
    }
  return cases;
}

}  // namespace waywiser
