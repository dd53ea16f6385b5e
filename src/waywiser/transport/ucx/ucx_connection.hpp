#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/transport/ucx/chunk_connection.hpp"
#include "waywiser/transport/ucx/rail_parts.hpp"

namespace waywiser {

class PeerChannel;

// Ordered messages between two processes over one UCX path, on one rail or several. Used by one thread at a time.
class UcxConnection final : public ChunkConnection {
 public:
  // `path`: of mechanism ucx. `name`: for messages. Throws unavailable or device.
  UcxConnection(const Path& path, PeerChannel& peer, std::string name);
  UcxConnection(const UcxConnection&) = delete;
  UcxConnection& operator=(const UcxConnection&) = delete;
  ~UcxConnection() override;

  // Both processes call it once, at the same time. Throws unavailable, device or timeout.
  void connect(Deadline deadline);

  // Start a message. Both regions must stay unchanged until it is done.
  void send(ConstRegion source) override;
  void receive(Region destination) override;

  // How many of the started messages are done, in order. Throw device, or corrupt if a message of another size came.
  std::uint64_t sent() override { return done(sends_); }
  std::uint64_t received() override { return done(receives_); }

  // Waits until all are done; flushed messages have arrived. Also throw timeout, or io if the peer process has ended.
  void finish(Deadline deadline);
  void finish_sends(Deadline deadline) { finish(sends_, deadline); }
  void flush(Deadline deadline);
  // Throws timeout or io; yields the processor.
  void look(Deadline deadline) const;

 private:
  // Each has its own network devices.
  struct Member {
    explicit Member(const UcxSelection& way) : selection(way), worker(UcxContext(way)) {}
    UcxSelection selection;
    UcxEndpoint endpoint;
    UcxWorker worker;
  };
  struct Messages {
    std::deque<RailParts> pending = {};
    std::uint64_t begun = 0;
  };

  void connect(Member& member, Deadline deadline);
  void progress();
  bool complete_first(Messages& list);
  void check(const RailParts::Ended& part, bool receiving);
  void finish(Messages& list, Deadline deadline);
  std::uint64_t done(Messages& list);

  std::string name_;
  PeerChannel& peer_;
  bool between_machines_ = false;
  bool broken_ = false;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<UcxRail> rails_;
  std::vector<int> percents_;
  Messages sends_, receives_;
};

}  // namespace waywiser
