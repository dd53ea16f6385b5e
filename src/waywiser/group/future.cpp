#include "waywiser/group/future.hpp"

#include "waywiser/collective/group_core.hpp"
#include "waywiser/comm/session/in_call.hpp"

namespace waywiser {

Future::Future(std::shared_ptr<GroupCore> group, std::shared_ptr<Activity> operation)
    : group_(std::move(group)), operation_(std::move(operation)) {}

void Future::keep(std::shared_ptr<void> owner) {
  if (!group_) return;
  const std::lock_guard lock(*group_);
  if (operation_) operation_->keeps = std::move(owner);
}

void Future::drop() noexcept {
  Session& session = group_->session();
  const WhenFree lock(session.call_lock());
  if (!session.is_forked() && operation_) try {
      if (!session.is_under_way(*operation_))
        operation_->keeps.reset();
      else if (operation_->keeps)
        session.leave_alone(operation_);
      else
        session.give_up(*operation_);
    } catch (const std::exception&) {  // the group has failed, and holds nothing of it
    }
  operation_.reset();
}

void Future::finish() noexcept {
  operation_->keeps.reset();
  operation_.reset();
}

bool Future::done() {
  if (!group_) return true;
  const std::lock_guard lock(*group_);
  if (!operation_) return true;
  Session& session = group_->session();
  const InCall in_call(session, operation_->call(), nullptr);
  session.progress();
  const bool under_way = session.is_under_way(*operation_);
  if (under_way) return false;
  finish();
  return true;
}

void Future::wait() {
  if (!group_) return;
  const std::lock_guard lock(*group_);
  if (!operation_) return;
  group_->session().wait_for(*operation_);
  finish();
}

}  // namespace waywiser
