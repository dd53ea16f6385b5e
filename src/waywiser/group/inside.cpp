#include "waywiser/group/inside.hpp"

#include <mutex>
#include <vector>

#include "waywiser/group/group_state.hpp"

namespace waywiser {
namespace {

int in_job(const Group& group, int rank) { return static_cast<int>(members_of(group)->peer(rank)); }

}  // namespace

void hold(const Group& group) { core_of(group)->hold(); }
void let_go(const Group& group) noexcept { core_of(group)->let_go(); }
GroupHold::GroupHold(const Group& group) : core_(*core_of(group)) { core_.hold(); }
GroupHold::~GroupHold() { core_.let_go(); }

Session& session_of(const Group& group) { return core_of(group)->session(); }
const std::shared_ptr<const Members>& members_of(const Group& group) { return core_of(group)->shared_members(); }
Call current_call(const Group& group) { return session_of(group).current(); }
const Chooser* plan_of(const Group& group) { return session_of(group).options().chooser.get(); }

bool same_machine(const Group& group, int rank) { return session_of(group).same_machine(in_job(group, rank)); }

std::string why_apart(const Group& group, int rank) { return why_apart(session_of(group), in_job(group, rank)); }

std::uint64_t process_of(const Group& group, int rank) {
  return session_of(group).introduction(in_job(group, rank)).process;
}

std::string message_way(const Group& group, int rank, Place mine, Bytes bytes) {
  Session& session = session_of(group);
  if (!mine.is_gpu()) return session.engine().way_to(members_of(group)->peer(rank), bytes);
  return session.gpus().why_staged(in_job(group, rank)).empty() ? "direct" : "staged";
}

Future send_runs(const Group& group, const ConstElements& data, std::span<const ElementRun> runs, int to, int label) {
  std::vector<ConstElements> parts;
  for (const auto& [first, count] : runs)
    if (count > 0) parts.push_back(data.slice(first, count));
  if (parts.empty()) parts.push_back(data.slice(0, 0));
  const std::lock_guard lock(*core_of(group));
  return GroupMessages(*core_of(group)).begin_send_runs(parts, to, label);
}

LabelledMessages::LabelledMessages(const Group& group, CallKind kind)
    : session_(session_of(group)), members_(members_of(group)) {
  call_.kind = kind;
  call_.group = members_->key();
}

}  // namespace waywiser
