#pragma once

#include <vector>

#include "waywiser/comm/session/activity.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// Operations of one call that has several, in the order in which they were added. Ends those that are not over when it
// goes.
class JointActivity : public Activity {
 public:
  explicit JointActivity(Session& session, const Call& call) : session_(session), call_(call) {}
  JointActivity(const JointActivity&) = delete;
  JointActivity& operator=(const JointActivity&) = delete;
  ~JointActivity() override;

  // Null: it is over. Others were started.
  void add(std::shared_ptr<Activity> part);
  // What the parts read or write.
  void keep(std::vector<std::byte> memory) { memory_ = std::move(memory); }
  // Until all are over.
  void finish();

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override {}  // the session does that to the parts
  bool needs_turns() const noexcept override { return false; }

 private:
  Session& session_;
  const Call call_;
  std::vector<std::byte> memory_;
  std::vector<std::shared_ptr<Activity>> parts_;
  std::size_t over_ = 0;  // so many of the first
};

}  // namespace waywiser
