#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "waywiser/collective/messages/message_algorithm.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"
#include "waywiser/collective/on_stream/exposed_table.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// What goes to another rank, or comes from it; one of the two may be empty.
struct PeerMessage {
  int rank = 0;
  ConstElements give;
  Elements take;
};

// Messages between up to 8 ranks, each with a GPU that reaches the memory of the others, by kernels: enqueued, complete
// when their stream is through, and replayable in graphs, as the counts of pieces are kept on the GPUs. Between two
// ranks they arrive in the order of their calls. A sender waits on the GPU when more than a few pieces are on the way.
class StreamMessages {
 public:
  // What a rank needs on its GPU; first what the others write into.
  static Bytes bytes_for(const messages::Layout& layout);
  // Clears `memory`, of at least bytes_for(layout) on the stream's GPU, which must stay. Long messages go straight into
  // arrays that are exposed when they are enqueued. Throws as the platform does.
  StreamMessages(Platform& platform, Stream& stream, int rank, const messages::Layout& layout, Region memory,
                 std::shared_ptr<const ExposedTable> exposed, MessageAlgorithms algorithms);

  // What others write into, of all ranks in their order, as this process has them mapped for this GPU; one's own
  // included. Empty: no messages to or from that rank.
  void connect(std::span<const Region> landings);

  // Whether stores to all others become visible in whole lines; the same at all ranks.
  void set_ll128(bool ll128) { ll128_ = ll128; }
  // For measuring, as MessageAlgorithms::set.
  void set_algorithm(std::optional<MessageAlgorithm> only) { algorithms_.set(only); }
  // Both at once; an empty array: only the other. Ranks other than this one. Throws as Stream::launch. A kernel that
  // waits for a rank in vain, or gets another message than it is for, traps.
  void enqueue(ConstElements give, int to, Elements take, int from, Stream& stream, Seconds deadline);
  // With several ranks at once, in one kernel, unless there are more than one with a rank in one direction.
  void enqueue(std::span<const PeerMessage> messages, Stream& stream, Seconds deadline);
  // How a message has failed; nothing while none has. `stopped`: why stop() was called. From any thread.
  std::optional<Error> failure(const std::string& stopped) const;
  // Ends all waits inside kernels, for good: they trap.
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
