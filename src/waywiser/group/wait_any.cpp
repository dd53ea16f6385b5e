#include <algorithm>
#include <optional>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/host_collectives.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/group/future.hpp"

namespace waywiser {
namespace {

// Explains an error of a wait, as a wait for each of the operations would.
template <typename Wait>
void explained(std::span<Activity* const> begun, Wait wait) {
  try {
    wait();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted)
      for (Activity* operation : begun) operation->explain();
    throw;
  }
}

// The place of the first operation that is over.
std::size_t first_over(Session& session, std::span<Activity* const> begun) {
  std::size_t found = begun.size();
  const auto is_over = [&] {
    found = 0;
    while (found < begun.size() && session.is_under_way(*begun[found])) ++found;
    return found < begun.size();
  };
  Seconds extra = 0;
  for (const Activity* operation : begun) extra = std::max(extra, operation->extra_time());
  const Call call = begun.front()->call();
  const InCall in_call(session, call);
  explained(begun, [&] {
    session.wait(
        call, is_over,
        [&] {
          return "none of " + std::to_string(begun.size()) +
                 " operations is over; the first: " + begun.front()->progress_text();
        },
        extra);
  });
  return found;
}

}  // namespace

std::size_t wait_any(std::span<Future* const> futures) {
  std::vector<Activity*> begun;
  std::vector<std::size_t> places;
  GroupCore* group = nullptr;
  for (std::size_t place = 0; place < futures.size(); ++place) {
    if (futures[place] == nullptr) continue;
    if (!futures[place]->operation_) return place;
    GroupCore& its = *futures[place]->group_;
    if (group != nullptr && &group->session() != &its.session())
      throw Error(ErrorKind::invalid_input, "wait_any: the futures are of two ranks");
    if (group == nullptr) group = &its;
    begun.push_back(futures[place]->operation_.get());
    places.push_back(place);
  }
  if (group == nullptr) throw Error(ErrorKind::invalid_input, "wait_any: there is no future");
  const std::lock_guard lock(*group);
  const std::size_t place = places[first_over(group->session(), begun)];
  futures[place]->finish();
  return place;
}

std::size_t wait_any(std::span<Future> futures) {
  std::vector<Future*> all;
  for (Future& future : futures) all.push_back(&future);
  return wait_any(all);
}

void wait_all(std::span<Future> futures) {
  for (Future& future : futures) future.wait();
}

}  // namespace waywiser
