#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "waywiser/c/handles.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/unique_id.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/group/local_ranks.hpp"
#include "waywiser/group/split_apart.hpp"

using namespace waywiser;

namespace {

JoinOptions join_options(const ww_join_options& asked) {
  if (asked.size != sizeof(ww_join_options))
    throw Error(ErrorKind::invalid_input, "the options say that they are of " + std::to_string(asked.size) +
                                              " bytes, not " + std::to_string(sizeof(ww_join_options)) +
                                              ": set `size`, and compile with this library's header");
  if (asked.virtual_gpus < 0) throw Error(ErrorKind::invalid_input, "virtual_gpus is below 0");
  JoinOptions options = usual_options();
  if (asked.timeout != 0) options.timeout = asked.timeout;
  if (asked.progress_thread != 0) options.progress_thread = true;
  options.threads = asked.threads != 0;
  if (asked.max_ctas != 0) options.max_ctas = asked.max_ctas;
  switch (asked.on_failure) {
    case WW_ON_FAILURE_DEFAULT: break;
    case WW_ON_FAILURE_TRAP: options.on_failure = OnFailure::trap; break;
    case WW_ON_FAILURE_RAISE: options.on_failure = OnFailure::raise; break;
    case WW_ON_FAILURE_ABORT: options.on_failure = OnFailure::abort; break;
    default: throw Error(ErrorKind::invalid_input, "no on_failure " + std::to_string(asked.on_failure));
  }
  if (asked.virtual_gpus != 0) {
    VirtualMachine machine;
    machine.gpus = asked.virtual_gpus;
    options.platform = open_virtual_platform(machine);
  }
  return options;
}

void join_with(const ww_join_options* asked, std::optional<Launch> launch, ww_group** group) {
  given(group, "the place for the group");
  JoinOptions options = asked == nullptr ? usual_options() : join_options(*asked);
  options.launch = std::move(launch);
  *group = new ww_group{Group::join(options), std::make_shared<CMemory>(options.platform != nullptr)};
}

}  // namespace

int ww_join(const ww_join_options* options, ww_group** group) {
  return guarded([&] { join_with(options, {}, group); });
}

int ww_make_unique_id(const char* towards, ww_unique_id* id) {
  return guarded([&] {
    const UniqueId made = make_unique_id(towards == nullptr ? "" : towards);
    static_assert(sizeof made == sizeof id->bytes);
    std::memcpy(given(id, "the place for the id").bytes, made.data(), made.size());
  });
}

int ww_join_by_id(const ww_join_options* options, const ww_unique_id* id, int rank, int size, ww_group** group) {
  return guarded([&] {
    UniqueId given_id;
    std::memcpy(given_id.data(), given(id, "the id").bytes, given_id.size());
    join_with(options, launch_by(given_id, rank, size), group);
  });
}

int ww_close(ww_group* group) {
  return guarded([&] { given(group, "the group").group.close(); });
}

void ww_group_free(ww_group* group) { delete group; }

int ww_abort(ww_group* group, const char* why) {
  return guarded([&] { given(group, "the group").group.abort(&given(why, "the reason")); });
}

int ww_failure(const ww_group* group) {
  return guarded([&] {
    const std::string why = given(group, "the group").group.failure();
    if (!why.empty()) throw Error(ErrorKind::io, why);
  });
}

int ww_split(ww_group* group, int color, int key, ww_group** part) {
  return guarded([&] {
    given(part, "the place for the group");
    std::optional<Group> made = given(group, "the group").group.split(color, key);
    *part = made ? new ww_group{std::move(*made), group->memory} : nullptr;
  });
}

int ww_split_apart(ww_group* group, int color, int key, ww_group** part) {
  return guarded([&] {
    given(part, "the place for the group");
    std::optional<Group> made = split_apart(given(group, "the group").group, color, key);
    *part = made ? new ww_group{std::move(*made), group->memory} : nullptr;
  });
}

int ww_split_by_machine(ww_group* group, int key, ww_group** part) {
  return guarded([&] {
    given(part, "the place for the group");
    *part = new ww_group{split_by_machine(given(group, "the group").group, key), group->memory};
  });
}

int ww_local_rank(const ww_group* group) { return group == nullptr ? -1 : local_rank(group->group); }
int ww_local_size(const ww_group* group) { return group == nullptr ? 0 : local_size(group->group); }
int ww_rank(const ww_group* group) { return group == nullptr ? -1 : group->group.rank(); }
int ww_size(const ww_group* group) { return group == nullptr ? 0 : group->group.size(); }
double ww_timeout(const ww_group* group) { return group == nullptr ? 0 : group->group.timeout(); }

int ww_set_timeout(ww_group* group, double seconds) {
  return guarded([&] { given(group, "the group").group.set_timeout(seconds); });
}
