#pragma once

#include <vector>

#include "waywiser/comm/message/activity.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// The operations of one call, in the order of add(). The destructor ends those that are not over.
class JointActivity : public Activity {
 public:
  explicit JointActivity(Session& session, const Call& call) : session_(session), call_(call) {}
  JointActivity(const JointActivity&) = delete;
  JointActivity& operator=(const JointActivity&) = delete;
  ~JointActivity() override;

  // nullptr: it is already over. The others have been started.
  void add(std::shared_ptr<Activity> part);
  // Memory that the parts read or write.
  void keep(std::vector<std::byte> memory) { memory_ = std::move(memory); }
  // Waits until all are over.
  void finish();

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override {}  // the session abandons the parts
  bool needs_turns() const noexcept override { return false; }

 private:
  Session& session_;
  const Call call_;
  std::vector<std::byte> memory_;
  std::vector<std::shared_ptr<Activity>> parts_;
  std::size_t over_ = 0;  // the number of leading parts that are over
};

}  // namespace waywiser
