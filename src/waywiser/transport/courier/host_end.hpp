#pragma once

#include <deque>

#include "waywiser/transport/courier/mailbox_set.hpp"
#include "waywiser/transport/courier/pair_end.hpp"

namespace waywiser {

// The end without the GPU. It posts puts to the GPU straight to the kernel of the other process.
class HostEnd : public PairEnd {
 public:
  // `memory` is the other end's mailboxes, `shape` that of its kernels.
  HostEnd(const Path& path, PeerChannel& peer, Memory memory, CourierShape shape);

  void put(Region destination, ConstRegion source, Stream& stream) override;
  void signal(Region flag, std::uint64_t value, Stream& stream) override;
  void accept(Region destination, Stream& stream) override;

 protected:
  void progress() override;
  bool idle() const override { return sends_.empty() && receives_.empty(); }
  std::string late_text() override;

 private:
  struct Send {
    const std::byte* source;
    Bytes bytes;
    Bytes posted = 0, done = 0;
    std::uint64_t value = 0;  // of a signal: what `source` is then
  };
  struct Receive {
    std::byte* destination;
    Bytes bytes;
    Bytes taken = 0;
  };

  void push_on();
  void post_part(Send& send);
  void take();

  Memory memory_;
  PairMailboxes& mailboxes_;
  MailboxSet up_, down_;
  std::deque<Send> sends_;
  std::deque<Receive> receives_;
  std::uint32_t sent_ = 0, received_ = 0;  // messages
  std::uint32_t accepted_ = 0;             // messages that had a room when last seen
  std::uint32_t number_ = 0, taken_ = 0;   // of `up` posted, of `down` taken
};

}  // namespace waywiser
