#pragma once

#include <memory>

#include "waywiser/device/platform.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

struct CourierOptions {
  unsigned warps = 16;  // 1 to 16: one polls, the others share the longer messages
  // From the end of a message to the next look: the host cannot have another one sooner, and a look lasts 1 us.
  Seconds put_rest = 0.5e-6, get_rest = 0.25e-6;
  Seconds idle = 1e-3;        // the kernel ends after this time without work
  Seconds residence = 20e-3;  // and after this time in any case
  Seconds patience = 10;      // the longest wait for one message
};

// A mailbox and the kernel that serves it: started when there is work, gone soon after the last.
class ResidentKernel {
 public:
  // Throws unavailable or device.
  ResidentKernel(Platform& platform, Place gpu, Place host, const CourierOptions& options);
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;
  ~ResidentKernel();

  Mailbox& box() noexcept { return *box_; }
  Stream& stream() noexcept { return *stream_; }
  // Starts it when it is not running. `last_number`: of the message before the next.
  void ensure_running(std::uint32_t last_number, Deadline deadline);
  // While waiting for an answer: starts it again if it parked just before the message came. Throws timeout, or device
  // when the kernel failed.
  void attend(std::uint32_t last_number, Deadline deadline);
  // Asks it to end, as message `number`.
  void stop(std::uint32_t number);
  // The same, and waits until it has ended. Throws timeout.
  void end(std::uint32_t number, Deadline deadline);

 private:
  bool parked() const;

  CourierOptions options_;
  Place gpu_;
  std::unique_ptr<Stream> stream_;
  Memory memory_;
  Mailbox* box_ = nullptr;
  std::uint32_t launch_ = 0;  // 0: never
};

}  // namespace waywiser
