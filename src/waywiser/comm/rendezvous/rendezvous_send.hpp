#pragma once

#include <memory>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/rendezvous/chunked_message.hpp"
#include "waywiser/comm/rendezvous/rts_cts_fin.hpp"

namespace waywiser {

// Sends a message out of GPU memory: an RTS, then the plan's path to the destination in the CTS, or pieces. One whose
// bytes lie apart goes from where they lie, every other run beside the one before; before pieces it is gathered.
class RendezvousSend : public Activity {
 public:
  // `number`: from the session, to which it returns at the end.
  RendezvousSend(Session& session, const Members& members, const Call& call, int label, ConstElements data,
                 unsigned number)
      : RendezvousSend(session, members, call, label, data, {data.region}, number) {}
  // `runs`: of one GPU, at least one; `all` has their type, the sum of their bytes, and the place.
  RendezvousSend(Session& session, const Members& members, const Call& call, int label, ConstElements all,
                 std::vector<ConstRegion> runs, unsigned number);
  RendezvousSend(const RendezvousSend&) = delete;
  RendezvousSend& operator=(const RendezvousSend&) = delete;
  ~RendezvousSend() override;

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  enum class Stage { waits, copies, gathers, pieces, tells, done };
  struct Gathered {
    Memory memory;
    std::unique_ptr<Stream> stream;
  };

  void offer();
  void read_reply();
  void check_reply() const;
  void start_copy();
  void put(std::size_t run);
  void gather();
  bool has_copied() const;
  void tell(RendezvousWay way, const std::string& why);
  void end();
  void tell_pieces();
  std::string choose_network_way();

  Session& session_;
  Call call_;
  ConstElements data_;  // its address: of the first run
  std::vector<ConstRegion> runs_;
  std::shared_ptr<Gathered> gathered_;  // before pieces, if there are several
  std::uint32_t peer_;
  unsigned number_;
  Stage stage_ = Stage::waits;
  ReadyToSend source_;
  std::string why_not_shared_;
  Message rts_, offered_, replied_, told_;
  ClearToSend reply_;
  Finished verdict_;
  GpuConnections::Connection *connection_ = nullptr, *beside_ = nullptr;  // the second where there are several runs
  Region there_;
  Bytes put_ = 0;
  PeerMemory::Part opened_;  // until the copy has ended
  ChunkedMessage pieces_;
};

}  // namespace waywiser
