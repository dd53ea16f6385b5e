#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/exposed_table.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// The same at all ranks.
struct FusedOptions {
  Bytes ll_bytes = Bytes{512} << 10;   // data that a rank sends to another by LL in one operation
  Bytes bulk_bytes = Bytes{32} << 20;  // data that all ranks together push in one operation
  Bytes ll128_bytes = Bytes{4} << 20;  // the same by LL128
  Seconds deadline = 60;               // of a wait inside a kernel
};

// Collectives of up to 8 ranks, each with a GPU that reaches the memory of all others: one kernel an operation, which
// sends, waits and reduces by itself. The count of operations is kept on the GPU, so that a captured graph can be
// replayed. Every rank enqueues the same operations in the same order, on streams in which they run one after another.
class FusedCollective {
 public:
  // What others write into, and all that a rank needs on its GPU, of which that is the first part.
  static Bytes landing_bytes(int ranks, const FusedOptions& options);
  static Bytes bytes_for(int ranks, const FusedOptions& options);
  // For connect() with other options.
  static void clear_landing(Platform& platform, Stream& stream, int ranks, const FusedOptions& options, Region memory);

  // Clears `memory`, of at least bytes_for(ranks, options) on the stream's GPU, which must stay. Throws as the platform
  // does.
  FusedCollective(Platform& platform, Stream& stream, int rank, int ranks, const FusedOptions& options, Region memory);

  // For the other ranks: to be exported, or used as it is within one process.
  Region landing() const { return landing_; }
  // Of all ranks in their order, as this process has them mapped for this GPU; one's own included.
  void connect(std::span<const Region> landings);
  // What is enqueued from now on, by all ranks alike, uses these memories, which clear_landing() has cleared. Those
  // before stay in use by graphs that have been captured.
  void connect(std::span<const Region> landings, const FusedOptions& options);
  // How many kernels a call takes.
  std::size_t pieces(const CollectiveCall& call, DataType type, fused::Method method) const;
  static std::size_t pieces(const CollectiveCall& call, DataType type, fused::Method method,
                            const FusedOptions& options);

  // Sums go straight into outputs that lie in what is exposed there.
  const std::shared_ptr<ExposedTable>& exposed() const { return exposed_; }

  // Whether stores to all others become visible in whole lines (Platform::why_no_whole_lines); the same at all ranks.
  void set_ll128(bool ll128) { ll128_ = ll128; }
  bool ll128() const { return ll128_; }

  // Why no fused kernel can serve the call; the same at all ranks.
  std::optional<std::string> why_unavailable(const CollectiveCall& call, DataType type) const;
  // What is taken where nothing was measured.
  fused::Method default_method(const CollectiveCall& call, DataType type) const;
  // Throws unavailable or invalid_input before anything is enqueued. A kernel that waits for a rank in vain, or for one
  // that is in another operation, traps. `as`: what the others are told that this is, if not this very call.
  void enqueue(const CollectiveCall& call, DataType type, ReduceOp op, ConstRegion input, Region output, Stream& stream,
               const fused::KernelShape& shape, const on_stream::Description* as = nullptr);

  // Waits for the stream. Throws with the rank that an operation has waited for in vain.
  void synchronize(Stream& stream, Deadline deadline);
  // How an operation has failed; nothing while none has. `stopped`: why stop() was called. From any thread.
  std::optional<Error> failure(const std::string& stopped) const;
  // Ends all waits inside kernels, for good: they trap.
  void stop() noexcept;
  // Of the waits of what is enqueued from now on.
  void set_deadline(Seconds deadline) { deadline_ = deadline; }

 private:
  block::Notice& notice() const;
  fused::FusedArguments terms(Stream& stream, unsigned blocks) const;
  void connect(std::span<const Region> landings, const fused::LandingLayout& layout);

  int rank_;
  bool ll128_ = true;
  std::atomic<Seconds> deadline_;
  fused::LandingLayout layout_;
  Region landing_, state_;
  Memory notice_;
  std::unique_ptr<LaunchCache> launches_;
  std::shared_ptr<ExposedTable> exposed_;
  std::vector<Region> landings_;
};

}  // namespace waywiser
