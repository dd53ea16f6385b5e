#pragma once

#include <functional>
#include <memory>

namespace waywiser {

class Session;

// Called when this process ends by exit(status). With status 0, live groups close; otherwise the other ranks hear of it
// as soon as the process is gone. Threads may be inside calls of the group meanwhile. `sealed`: its frames are, by
// OpenSSL, which is open now.
void watch_process_end(Session& session, bool sealed);
void forget_process_end(Session& session) noexcept;

// While this object lives, `end` is called before that, if the status is 0: for what must say more to another rank than
// that it leaves. It must not throw.
class BeforeProcessEnd {
 public:
  explicit BeforeProcessEnd(std::function<void()> end);
  BeforeProcessEnd(const BeforeProcessEnd&) = delete;
  BeforeProcessEnd& operator=(const BeforeProcessEnd&) = delete;
  ~BeforeProcessEnd();

 private:
  friend void end_process(int status, void*);
  const std::function<void()> end_;
};

// The last reference has gone, but how the process ends is not known yet: waits briefly for the other ranks, and leaves
// the rest to exit(), or to the next end_kept_groups().
void end_with_process(std::unique_ptr<Session> session) noexcept;
// The same for a shared session. `keeps`: lives as long as the session.
void end_with_process(std::shared_ptr<Session> session, std::shared_ptr<void> keeps) noexcept;
void end_kept_groups() noexcept;

}  // namespace waywiser
