#include "waywiser/comm/future.hpp"

#include "waywiser/comm/session.hpp"

namespace waywiser {

Future::Future(std::shared_ptr<Session> session, std::shared_ptr<Activity> operation)
    : session_(std::move(session)), operation_(std::move(operation)) {}

bool Future::done() {
  if (!operation_) return true;
  session_->begin(session_->current());
  session_->progress();
  if (session_->is_under_way(*operation_)) return false;
  operation_.reset();
  return true;
}

void Future::wait() {
  if (!operation_) return;
  const Call call = operation_->call();
  session_->begin(call);
  session_->wait(
      call, [this] { return !session_->is_under_way(*operation_); }, [this] { return operation_->progress_text(); });
  session_->end();
  operation_.reset();
}

}  // namespace waywiser
