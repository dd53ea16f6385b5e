#include "waywiser/comm/session/joint_activity.hpp"

#include <exception>
#include <utility>

namespace waywiser {

JointActivity::~JointActivity() {
  if (session_.is_forked()) return;
  const WhenFree lock(session_.call_lock());
  for (const auto& part : parts_) try {
      if (part && session_.is_under_way(*part)) session_.give_up(*part);
    } catch (const std::exception&) {  // the group has failed, and holds nothing of it
    }
}

void JointActivity::add(std::shared_ptr<Activity> part) {
  if (part) parts_.push_back(std::move(part));
}

bool JointActivity::advance() {
  for (; over_ < parts_.size(); ++over_) {
    if (session_.is_under_way(*parts_[over_])) return false;
    parts_[over_].reset();
  }
  return true;
}

void JointActivity::finish() {
  for (; over_ < parts_.size(); ++over_) {
    session_.wait_for(*parts_[over_]);
    parts_[over_].reset();
  }
}

std::string JointActivity::progress_text() const {
  return over_ < parts_.size() ? text(parts_[over_]->call()) + ": " + parts_[over_]->progress_text() : "complete";
}

}  // namespace waywiser
