#pragma once

#include <memory>

#include "waywiser/device/platform.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

struct CourierOptions {
  unsigned warps = 16;         // 1 to 16: `pollers` look for messages, the others share the longer ones
  unsigned pollers = 4;        // 1 to 4
  unsigned threads = 1;        // stand for the warps on a virtual GPU
  Seconds look_gap = 0.26e-6;  // from a look of one poller to that of the next
  Seconds idle = 1e-3;         // the kernel ends after this time without work
  Seconds residence = 20e-3;   // and after this time in any case
  Seconds patience = 10;       // the longest wait for one message
};

// A kernel that serves a mailbox: started when there is work, gone soon after the last.
class ResidentKernel {
 public:
  // The mailbox is made at `offset` of `memory`. Throws unavailable, device or invalid_input.
  ResidentKernel(Platform& platform, Place gpu, std::shared_ptr<const Memory> memory, Bytes offset,
                 const CourierOptions& options);
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;
  ~ResidentKernel();

  Mailbox& box() noexcept { return *box_; }
  Stream& stream() noexcept { return *stream_; }
  // Starts it when it is not running.
  void ensure_running(Deadline deadline);
  // While waiting for an answer: starts it again if it parked just before the message came. Throws timeout, or device
  // when the kernel failed.
  void attend(Deadline deadline);
  // Waits until it has ended. Throws timeout.
  void end(Deadline deadline);

 private:
  bool parked() const;
  void stop();

  CourierOptions options_;
  Place gpu_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<const Memory> memory_;
  Region region_;  // of the mailbox
  Mailbox* box_ = nullptr;
  std::uint32_t launch_ = 0;  // 0: never
};

}  // namespace waywiser
