#pragma once

#include <memory>
#include <span>
#include <vector>

#include "waywiser/comm/session/session.hpp"
#include "waywiser/device/memory.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

// Host memory in place of pieces of GPU memory, one behind the other, and copies between the two that are asked for
// their end and never waited for. One piece of host memory stays where it is.
class StagedCopies {
 public:
  StagedCopies(Session& session, std::vector<Region> pieces);
  StagedCopies(const StagedCopies&) = delete;
  StagedCopies& operator=(const StagedCopies&) = delete;
  ~StagedCopies();

  Region on_host() const noexcept { return on_host_; }
  // Begins the copies to the host, or back.
  void fetch() { copy(true); }
  void put_back() { copy(false); }
  // Whether they have ended.
  bool done() const { return !copied_ || copied_->done(); }
  // The memory may go when the copies have ended: it is held until then.
  void abandon() noexcept;

 private:
  void copy(bool to_host);

  Session& session_;
  const std::vector<Region> pieces_;
  Place gpu_;
  Memory memory_;
  Region on_host_;
  std::shared_ptr<Event> copied_;
};

}  // namespace waywiser
