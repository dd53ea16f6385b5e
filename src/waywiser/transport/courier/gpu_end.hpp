#pragma once

#include <deque>

#include "waywiser/transport/courier/pair_end.hpp"
#include "waywiser/transport/courier/resident_kernel.hpp"

namespace waywiser {

// The end that owns the GPU memory and the mailboxes, and runs a kernel for each direction that is used.
class GpuEnd : public PairEnd {
 public:
  GpuEnd(const Path& path, PeerChannel& peer, Platform& platform, const std::shared_ptr<const Memory>& memory,
         const CourierOptions& options);

  void put(Region destination, ConstRegion source, Stream& stream) override;
  void signal(Region flag, std::uint64_t value, Stream& stream) override;
  void accept(Region destination, Stream& stream) override;
  void rest() override;
  CourierShape shape() const noexcept { return up_.shape(); }

 protected:
  void progress() override;
  bool idle() const override { return sends_.empty() && awaited_.empty(); }
  void look_after() override;
  std::string late_text() override;

 private:
  struct Send {
    const std::byte* source;  // nullptr: `value` instead
    Bytes bytes;
    Bytes posted = 0, done = 0;
    std::uint64_t value = 0;
  };

  void push_on();
  void post_part(Send& send);

  CourierOptions options_;
  PairMailboxes& mailboxes_;
  ResidentKernel up_, down_;
  MailboxSet up_lanes_, down_lanes_;
  std::deque<Send> sends_;
  struct Awaited {
    std::uint32_t number;  // in `up`, of the last part
    Bytes part;            // its size
  };
  std::deque<Awaited> awaited_;              // accepted messages
  std::uint32_t accepted_ = 0, sent_ = 0;    // messages
  std::uint32_t expected_ = 0, number_ = 0;  // of `up` with the last accepted, of `down` posted
};

}  // namespace waywiser
