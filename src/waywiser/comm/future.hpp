#pragma once

#include <memory>

namespace waywiser {

class Activity;
class Session;

// Something that a group has begun. The memory that it was given must live until it is done.
class [[nodiscard]] Future {
 public:
  Future() = default;  // done
  Future(std::shared_ptr<Session> session, std::shared_ptr<Activity> operation);

  // Gives everything of the group that is under way a turn. Throws what wait() would.
  bool done();
  // Throws timeout, io when the group has failed, invalid_input when the ranks' calls do not fit together.
  void wait();

 private:
  std::shared_ptr<Session> session_;
  std::shared_ptr<Activity> operation_;
};

}  // namespace waywiser
