#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/kernels/block/notice.hpp"

namespace waywiser {

// Where a stream tells the host, by a kernel of one thread, that it has got there, and waits until the host has carried
// out an operation. It goes no further without that: when the group has failed, or the host is late, the kernel traps.
// What the host asks and tells is in its own memory, so that it never waits for the GPU.
class StreamGate {
 public:
  // `rank`: for messages.
  StreamGate(Platform& platform, Place gpu, int rank);

  // Numbers of places in streams ascend. At close() the stream also waits for open() with its number. `what`: the call.
  std::uint64_t note(Stream& stream);
  std::uint64_t close(Stream& stream, const std::string& what, Seconds deadline);
  // Of two gates the second one lets its stream go when the first one has been opened, too.
  void open(std::uint64_t number);
  // The last number that a stream has come to; what had been enqueued before it has ended.
  std::uint64_t reached() const noexcept;
  // How a wait has failed; nothing while none has. `stopped`: why stop() was called. From any thread.
  std::optional<Error> failure(const std::string& stopped) const;
  // Ends all waits, for good: they trap.
  void stop() noexcept;

 private:
  struct Words {
    block::Notice notice;
    std::uint64_t reached = 0, open = 0;
  };
  Words& words() const;
  void launch(Stream& stream, bool waits, Seconds deadline);

  const int rank_;
  const Memory memory_;
  std::uint64_t last_ = 0;
  struct Waiting {
    std::string what;
    Seconds deadline = 0;
    bool opened = false;
  };
  mutable std::mutex mutex_;                  // of the following
  std::map<std::uint64_t, Waiting> waiting_;  // at gates that are not open
};

}  // namespace waywiser
