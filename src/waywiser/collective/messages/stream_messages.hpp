#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "waywiser/collective/messages/message_algorithm.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"
#include "waywiser/collective/on_stream/exposed_table.hpp"
#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// The messages to and from one rank; one of the two may be empty.
struct PeerMessage {
  int rank = 0;
  ConstElements give;
  Elements take;
};

// What a rank gives itself, in two arrays of one length or none.
struct OwnBlock {
  ConstRegion from;
  Region to;
};

// Messages by kernels between up to 8 ranks whose GPUs reach each other's memory: enqueued, complete when their stream
// has run them, and replayable in graphs, since the GPUs count the pieces. Between two ranks they arrive in the order
// of their calls. A sender waits on the GPU if more than a few pieces are in flight.
class StreamMessages {
 public:
  // The memory that a rank needs on its GPU; it begins with the part into which others write.
  static Bytes bytes_for(const messages::Layout& layout);
  // Clears `memory`, which has at least bytes_for(layout) bytes on the stream's GPU and must stay. Long messages go
  // directly into arrays that are exposed when they are enqueued. `ranks_on_a_gpu` share the multiprocessors. Throws
  // the platform's errors.
  StreamMessages(Platform& platform, Stream& stream, int rank, const messages::Layout& layout, Region memory,
                 std::shared_ptr<const ExposedTable> exposed, MessageAlgorithms algorithms, int ranks_on_a_gpu = 1);

  // The landing memories in rank order, as mapped in this process for this GPU; includes this rank's own. Empty: no
  // messages to or from that rank.
  void connect(std::span<const Region> landings);

  // Whether stores to all others become visible as whole lines; equal at all ranks.
  void set_ll128(bool ll128) { ll128_ = ll128; }
  // For measuring, see MessageAlgorithms::set.
  void set_algorithm(std::optional<MessageAlgorithm> only) { algorithms_.set(only); }
  // Enqueues a send and a receive at once; an empty array: only the other one. The peers must be other ranks. Throws
  // like Stream::launch. A kernel that waits in vain for a rank, or that gets a differing message, traps.
  void enqueue(ConstElements give, int to, Elements take, int from, Stream& stream, Seconds deadline);
  // Messages with several ranks at once and the copy of `own`, in one kernel if there is at most one message per rank
  // and direction.
  void enqueue(std::span<const PeerMessage> messages, const OwnBlock& own, Stream& stream, Seconds deadline);
  // As FusedCollective::keep_context().
  void keep_context(std::uint32_t* word) noexcept { on_stream::keep_context(notice(), word); }
  // The error of a failed message, if any. `stopped`: why stop() was called. Callable from any thread.
  std::optional<Error> failure(const std::string& stopped, std::span<const int> in_job = {}) const;
  // Ends all waits inside kernels for good: they trap.
  void stop() noexcept;

 private:
  messages::MessageArguments arguments(Stream& stream, Seconds deadline);
  messages::MessagePart giving(const messages::MessageArguments& terms, ConstElements data, int to,
                               Stream& stream) const;
  messages::MessagePart taking(const messages::MessageArguments& terms, Elements data, int from, Stream& stream) const;
  void launch(const messages::MessageArguments& terms, messages::JointWork work, Stream& stream);
  block::Notice& notice() const;
  Region state() const;

  int rank_;
  std::uint32_t multiprocessors_;
  MessageAlgorithms algorithms_;
  bool ll128_ = true;
  std::atomic<Seconds> deadline_ = 0;  // of the last message
  messages::Layout layout_;
  Region memory_;
  Memory notice_;
  std::unique_ptr<LaunchCache> launches_;
  std::shared_ptr<const ExposedTable> exposed_;
  std::vector<Region> landings_;
};

}  // namespace waywiser
