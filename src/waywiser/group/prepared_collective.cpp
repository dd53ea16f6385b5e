// Collectives that are prepared: a start is a call of the group, whose schedule is bound once where hosts run it.
#include <algorithm>
#include <array>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/group/array_places.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/prepared_state.hpp"

namespace waywiser {
namespace {

// Throws at all ranks what the first one that differs has called.
void check_calls(GroupCore& core, const Call& mine) {
  std::vector<Call> all(static_cast<std::size_t>(core.size()));
  core.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (const std::string why = difference(0, all[0], static_cast<int>(rank), all[rank]); !why.empty())
      throw_known_to_all(core, Error(ErrorKind::invalid_input, "what is prepared: " + why));
}

}  // namespace

Prepared::State::State(std::shared_ptr<Group::State> of, const WantedCollective& wanted, const CollectiveCall& call)
    : group(std::move(of)), collective(wanted), as(call.as), reduce_op(wanted.op) {
  const ConstRegion read = wanted.input.region;
  const std::array arrays{Elements({const_cast<std::byte*>(read.data), read.bytes, read.place}, wanted.input.type),
                          wanted.output};
  const std::vector<ArrayPlaces> places = places_of_all(*group->core, arrays);
  if (std::ranges::none_of(places, &ArrayPlaces::gpu)) {
    on_hosts = std::make_shared<Execution>(group->session());
    on_hosts->bind(group->core->shared_members(), as, group->hosts.schedule_for(call), wanted.input, wanted.output);
    return;
  }
  why_staged = why_no_gpus(places);
  if (!why_staged.empty()) return;
  group->gpus.prepare(gpu_of(arrays), std::max(arrays[0].region.bytes, arrays[1].region.bytes));
  why_staged = group->gpus.why_staged();
}

Prepared Prepared::of_collective(Group& group, std::string_view operation, ConstElements input, Elements output,
                                 ReduceOp op, int root) {
  const auto& state = group.state_;
  const std::lock_guard lock(*state->core);
  WantedCollective wanted{Collective::all_reduce, input, output, op, root};
  CollectiveCall call;
  throw_at_all(group, failure_of([&] {
                 wanted.operation = parse_prepared(operation);
                 call = numbered(*state->core, wanted);
                 state->core->take_back(call.as);
                 check_shared(call, wanted.input, wanted.output, false);
               }));
  check_calls(*state->core, call.as);
  return Prepared(std::make_unique<State>(state, wanted, call));
}

}  // namespace waywiser
