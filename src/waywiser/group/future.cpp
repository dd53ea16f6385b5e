#include "waywiser/group/future.hpp"

#include "waywiser/comm/session/session.hpp"

namespace waywiser {

Future::Future(std::shared_ptr<Session> session, std::shared_ptr<Activity> operation)
    : session_(std::move(session)), operation_(std::move(operation)) {}

void Future::keep(std::shared_ptr<void> owner) {
  if (!operation_) return;
  const std::lock_guard lock(*session_);
  operation_->keeps = std::move(owner);
}

void Future::drop() noexcept {
  if (!session_->is_forked()) try {
      const std::lock_guard lock(*session_);
      if (!session_->is_under_way(*operation_))
        operation_->keeps.reset();
      else if (operation_->keeps)
        session_->leave_alone(operation_);
      else
        session_->give_up(*operation_);
    } catch (const std::exception&) {  // the group has failed, and holds nothing of it
    }
  operation_.reset();
}

void Future::finish() noexcept {
  operation_->keeps.reset();
  operation_.reset();
}

bool Future::done() {
  if (!operation_) return true;
  const InCall in_call(*session_, operation_->call());
  session_->progress();
  const bool under_way = session_->is_under_way(*operation_);
  if (under_way) return false;
  finish();
  return true;
}

void Future::wait() {
  if (!operation_) return;
  const std::lock_guard lock(*session_);
  session_->wait_for(*operation_);
  finish();
}

}  // namespace waywiser
