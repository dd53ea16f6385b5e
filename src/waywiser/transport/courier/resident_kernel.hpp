#pragma once

#include <memory>

#include "waywiser/device/platform.hpp"
#include "waywiser/transport/courier/courier_kernel.hpp"
#include "waywiser/transport/courier/mailbox_set.hpp"

namespace waywiser {

struct CourierOptions {
  CourierShape shape{4, 4};
  CourierShape virtual_shape{1, 1};  // on a virtual GPU, where each warp is a thread
  Seconds look_gap = 0.3e-6;         // from a look of one poller to that of the next
  Seconds idle = 1e-3;               // the kernel ends after this time without work
  Seconds residence = 20e-3;         // and after this time in any case
  Seconds patience = 10;             // the longest wait for one message
};

// A kernel that serves the mailboxes of some lanes: started when there is work, ends soon after the last work.
class ResidentKernel {
 public:
  // Creates the mailboxes at `offset` of `memory`. Throws unavailable, device or invalid_input.
  ResidentKernel(Platform& platform, Place gpu, std::shared_ptr<const Memory> memory, Bytes offset,
                 const CourierOptions& options);
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;
  ~ResidentKernel();

  CourierShape shape() const noexcept { return shape_; }
  // As the host uses the mailboxes.
  MailboxSet lanes() const { return {boxes_, shape_}; }
  Stream& stream() noexcept { return *stream_; }
  bool is_running() const { return !parked(); }
  // Starts it if it is not running. Throws timeout if the previous launch does not end.
  void ensure_running();
  // While waiting for an answer: restarts it if it parked just before the message came. Throws device if the kernel
  // failed.
  void attend();
  std::string late_text() const { return "the resident kernel on " + text(gpu_) + " did not answer in time"; }
  // Waits until it has ended. Throws timeout.
  void end();

 private:
  bool parked() const;
  void stop();

  CourierOptions options_;
  Place gpu_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<const Memory> memory_;
  CourierShape shape_;
  Region region_;  // of the mailboxes
  Mailbox* boxes_ = nullptr;
  std::uint32_t launch_ = 0;  // 0: never
};

}  // namespace waywiser
