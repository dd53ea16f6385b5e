#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {

class PeerChannel;

// Messages in order between two processes over one road of UCX, on one rail or several. Used by one thread at a time.
class UcxLine {
 public:
  // `path`: of mechanism ucx. `name`: for messages. Throws unavailable or device.
  UcxLine(const Path& path, PeerChannel& peer, std::string name);
  UcxLine(const UcxLine&) = delete;
  UcxLine& operator=(const UcxLine&) = delete;
  ~UcxLine();

  // Both processes call it once, at the same time. Throws unavailable, device or timeout.
  void connect();

  // Begin a message. Both regions stay as they are until it is done.
  void send(ConstRegion source);
  void receive(Region destination);

  // How many of the messages begun so far are done, in their order. Throw device, or corrupt when another size came.
  std::uint64_t sent() { return done(sends_); }
  std::uint64_t received() { return done(receives_); }

  // Until all are done; what has been flushed has arrived. Throw also timeout, or io when the peer process has ended.
  void finish(Deadline deadline);
  void finish_sends(Deadline deadline) { finish(sends_, deadline); }
  void flush(Deadline deadline);
  // Throws timeout or io; lets others run.
  void look(Deadline deadline) const;

 private:
  // Each on network devices of its own, with a share of every message.
  struct Rail {
    explicit Rail(const UcxRoad& way) : road(way), context(way), worker(context) {}
    UcxRoad road;
    UcxContext context;
    UcxWorker worker;
  };
  struct Pending {
    Rail* rail;
    UcxRequest request;
    Bytes bytes;
    std::uint64_t message;
  };
  struct Messages {
    bool receiving;
    std::deque<Pending> pending = {};
    std::uint64_t begun = 0;
  };

  void connect(Rail& rail);
  void end() noexcept;
  void leave() noexcept;
  void progress();
  static void remember(Messages& list, Rail& rail, UcxRequest request, Bytes bytes);
  template <typename Post>
  void post(Messages& list, Bytes bytes, Post post);
  bool complete_first(Messages& list);
  void finish(Messages& list, Deadline deadline);
  std::uint64_t done(Messages& list);
  void check_length(const ucp_tag_recv_info_t& info, Bytes expected) const;

  std::string name_;
  PeerChannel& peer_;
  bool between_machines_ = false;
  bool broken_ = false;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<int> percents_;
  Messages sends_{false}, receives_{true};
};

}  // namespace waywiser
