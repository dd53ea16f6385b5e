#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "waywiser/collective/messages/message_landing.hpp"
#include "waywiser/collective/on_stream/copy_pipeline.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// Long messages by copy engines, in pieces that use the slots for bulk messages of the pair. Kernels of 8 bytes let the
// two ranks meet: the first time in the place of the message's first piece, so that a differing message is detected.
class CopiedMessages {
 public:
  // A message to or from `peer`.
  struct Message {
    int peer = 0;
    bool gives = false;
    Region data;  // only read if this rank gives
    std::uint64_t description = 0, signature = 0;
    Bytes pieces = 1;  // at least
  };
  // Launches a kernel of a pipeline's stream, with its cache.
  using Launch =
      std::function<void(const messages::MessageArguments&, const messages::MessageWork&, Stream&, LaunchCache*)>;
  using ArgumentsOf = std::function<messages::MessageArguments(Stream&)>;

  // The memory that it needs on the GPU besides the landing.
  static constexpr Bytes words_bytes = block::max_ranks * 4 * sizeof(std::uint64_t);
  // The largest piece: the same at both ends. Too small a one is slower than kernels.
  static Bytes area(const messages::Layout& layout);
  static bool has_room(const messages::Layout& layout) { return area(layout) >= (Bytes{1} << 20); }

  CopiedMessages(Platform& platform, Place gpu, int rank, const messages::Layout& layout, Region words)
      : platform_(platform), gpu_(gpu), rank_(rank), layout_(layout), words_(words) {}

  // Between any two ranks in order, otherwise at once; what `stream` has next begins when all have ended. `landings`:
  // of all ranks.
  void enqueue(const std::vector<Message>& all, const std::vector<Region>& landings, Stream& stream,
               const ArgumentsOf& arguments_of, const Launch& launch);

 private:
  struct Way {
    CopyPipeline pipeline;
    std::unique_ptr<LaunchCache> launches;
  };
  std::pair<int, int> ends_of(const Message& message) const {
    return message.gives ? std::pair(rank_, message.peer) : std::pair(message.peer, rank_);
  }
  messages::MessagePart signal(const messages::MessageArguments& terms, const Message& message, bool gives,
                               bool is_first, Stream& on) const;
  CopyPipeline::Work work_of(const Message& message, const std::vector<Region>& landings,
                             const ArgumentsOf& arguments_of, const Launch& launch);

  Platform& platform_;
  const Place gpu_;
  const int rank_;
  const messages::Layout layout_;
  const Region words_;
  std::map<std::pair<int, int>, Way> ways_;  // by sender and receiver
};

}  // namespace waywiser
