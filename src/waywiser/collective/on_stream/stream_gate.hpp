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

// Where a stream waits, by a kernel of one thread, until the host has carried out an operation. It goes no further
// without that: when the group has failed, or the host is late, the kernel traps.
class StreamGate {
 public:
  // `rank`: for messages.
  StreamGate(Platform& platform, Place gpu, int rank);

  // The stream waits there for open() with the number that is returned; they ascend. `what`: the call.
  std::uint64_t close(Stream& stream, const std::string& what, Seconds deadline);
  void open(std::uint64_t number);
  // How a wait has failed; nothing while none has. `stopped`: why stop() was called. From any thread.
  std::optional<Error> failure(const std::string& stopped) const;
  // Ends all waits, for good: they trap.
  void stop() noexcept;

 private:
  struct Words {
    block::Notice notice;
    std::uint64_t open = 0;
  };
  Words& words() const;

  const int rank_;
  const Memory memory_;
  std::uint64_t last_ = 0;
  struct Waiting {
    std::string what;
    Seconds deadline;
  };
  mutable std::mutex mutex_;  // of the following
  std::map<std::uint64_t, Waiting> waiting_;
};

}  // namespace waywiser
