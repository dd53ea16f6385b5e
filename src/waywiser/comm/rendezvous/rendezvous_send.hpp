#pragma once

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/rendezvous/chunked_message.hpp"
#include "waywiser/comm/rendezvous/rts_cts_fin.hpp"

namespace waywiser {

// Sends a message out of GPU memory: an RTS, then the plan's path to the destination in the CTS, or pieces.
class RendezvousSend : public Activity {
 public:
  // `number`: from the session, to which it returns at the end.
  RendezvousSend(Session& session, const Members& members, const Call& call, int label, ConstElements data,
                 unsigned number);
  RendezvousSend(const RendezvousSend&) = delete;
  RendezvousSend& operator=(const RendezvousSend&) = delete;
  ~RendezvousSend() override;

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  enum class Stage { waits, copies, pieces, tells, done };

  void offer();
  void read_reply();
  void check_reply() const;
  void start_copy();
  void tell(RendezvousWay way, const std::string& why);
  void end();
  void tell_pieces();
  std::string choose_network_way();

  Session& session_;
  Call call_;
  ConstElements data_;
  std::uint32_t peer_;
  unsigned number_;
  Stage stage_ = Stage::waits;
  ReadyToSend source_;
  std::string why_not_shared_;
  Message rts_, offered_, replied_, told_;
  ClearToSend reply_;
  Finished verdict_;
  GpuConnections::Connection* connection_ = nullptr;
  PeerMemory::Part opened_;  // until the copy has ended
  ChunkedMessage pieces_;
};

}  // namespace waywiser
