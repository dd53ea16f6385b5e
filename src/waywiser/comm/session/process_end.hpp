#pragma once

#include <memory>

namespace waywiser {

class Session;

// Called when this process ends by exit(status). With status 0, live groups close; otherwise the other ranks hear of it
// as soon as the process is gone. Threads may be inside calls of the group meanwhile.
void watch_process_end(Session& session);
void forget_process_end(Session& session) noexcept;

// The last reference has gone, but how the process ends is not known yet: waits briefly for the other ranks, and leaves
// the rest to exit(), or to the next end_kept_groups().
void end_with_process(std::unique_ptr<Session> session) noexcept;
// The same for a shared session. `keeps`: lives as long as the session.
void end_with_process(std::shared_ptr<Session> session, std::shared_ptr<void> keeps) noexcept;
void end_kept_groups() noexcept;

}  // namespace waywiser
