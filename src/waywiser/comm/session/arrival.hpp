#pragma once

#include <memory>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"
#include "waywiser/comm/network/encrypted_messages.hpp"
#include "waywiser/comm/session/engine.hpp"

namespace waywiser {

// A rank that has met the others and opens nothing of UCX yet: what that may use depends on what all of them reach.
// Collective.
class Arrival {
 public:
  explicit Arrival(const JoinOptions& options);

  const JoinOptions& options() const noexcept { return options_; }
  Seconds timeout() const noexcept { return timeout_; }
  const JobNetwork& network() const noexcept { return network_; }
  Engine open_engine();
  // Collective: all ranks tell the others how the engine is reached, which then knows them.
  void introduce(Engine& engine);
  Muster& muster() noexcept { return muster_; }
  // This rank cannot go on: the others hear why, unless it was interrupted.
  void leave(const Error& error) noexcept;

 private:
  Introduction introduction() const;
  void say(const std::string& note) const;

  JoinOptions options_;
  Seconds timeout_;
  Deadline deadline_;
  std::unique_ptr<EncryptedMessages> encrypted_;
  Muster muster_;
  JobNetwork network_;
  unsigned sharing_shm_ = 1;
};

}  // namespace waywiser
