#pragma once

#include <memory>

namespace waywiser {

class Session;

// The end of this process by exit(status). Ranks whose groups are alive close them if the status is 0; otherwise the
// other ranks hear of it as soon as the process is gone. Threads may be inside calls of the group meanwhile.
void watch_process_end(Session& session);
void forget_process_end(Session& session) noexcept;

// The last reference has gone, but how the process ends is not known yet: waits a moment for the other ranks, and
// leaves the rest to exit(), or to the next end_kept_groups().
void end_with_process(std::unique_ptr<Session> session) noexcept;
// The same where the session is shared. `keeps`: what lives as long as it does.
void end_with_process(std::shared_ptr<Session> session, std::shared_ptr<void> keeps) noexcept;
void end_kept_groups() noexcept;

}  // namespace waywiser
