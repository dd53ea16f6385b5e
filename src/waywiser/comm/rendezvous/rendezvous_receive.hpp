#pragma once

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/rendezvous/chunked_message.hpp"
#include "waywiser/comm/rendezvous/rts_cts_fin.hpp"

namespace waywiser {

// The receiver's part of a rendezvous after the RTS.
class RendezvousReceive : public Activity {
 public:
  // `peer`: the sender, as a rank of the whole session.
  RendezvousReceive(Session& session, const Call& call, std::uint32_t peer, Tag rts, Elements into);
  RendezvousReceive(const RendezvousReceive&) = delete;
  RendezvousReceive& operator=(const RendezvousReceive&) = delete;
  ~RendezvousReceive() override;

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  enum class Stage { hears, reads, waits, pieces, done };

  void listen(void* what, Bytes bytes);
  bool read();
  void reply(RendezvousWay way);
  void offer();
  void ask_for_it();
  void take_verdict();
  void follow(std::uint32_t way);

  Session& session_;
  Call call_;
  std::uint32_t peer_;
  unsigned number_;
  Region into_;
  ReadyToSend source_;
  std::string why_not_read_;
  ClearToSend reply_;
  Finished verdict_;
  Message replied_, told_;
  Stage stage_ = Stage::hears;
  GpuConnections::Connection* connection_ = nullptr;
  PeerMemory::Part opened_;  // until the copy has ended
  ChunkedMessage pieces_;
};

}  // namespace waywiser
