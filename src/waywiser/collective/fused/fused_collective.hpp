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
#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

// Equal at all ranks.
struct FusedOptions {
  Bytes ll_bytes = defaults::apart_ll;        // data from one rank to another by LL in one operation
  Bytes bulk_bytes = defaults::apart_bulk;    // data that all ranks push together in one operation
  Bytes ll128_bytes = defaults::apart_ll128;  // the same by LL128
  Seconds deadline = 60;                      // of a wait inside a kernel
};

// Collectives of up to 8 ranks whose GPUs reach each other's memory: each operation is one kernel that sends, waits and
// reduces. The GPU counts the operations, so that a captured graph can be replayed. Every rank enqueues the same
// operations in the same order, on streams in which they run one after another.
class FusedCollective {
 public:
  // The size of the landing memory; and of all memory that a rank needs on its GPU, which begins with the landing
  // memory.
  static Bytes landing_bytes(int ranks, const FusedOptions& options);
  static Bytes bytes_for(int ranks, const FusedOptions& options);
  // For connect() with other options.
  static void clear_landing(Stream& stream, int ranks, const FusedOptions& options, Region memory);

  // Clears `memory`, which has at least bytes_for(ranks, options) bytes on the stream's GPU and must stay. Throws the
  // platform's errors.
  FusedCollective(Platform& platform, Stream& stream, int rank, int ranks, const FusedOptions& options, Region memory);

  // For the other ranks: exported, or used directly within one process.
  Region landing() const { return landing_; }
  // In rank order, as mapped in this process for this GPU; includes this rank's own.
  void connect(std::span<const Region> landings);
  // All ranks alike: later operations use these memories, which clear_landing() has cleared. Captured graphs still use
  // the earlier ones.
  void connect(std::span<const Region> landings, const FusedOptions& options);
  // The number of kernels of a call.
  std::size_t pieces(const CollectiveCall& call, DataType type, fused::Method method) const;
  static std::size_t pieces(const CollectiveCall& call, DataType type, fused::Method method,
                            const FusedOptions& options);

  // Sums go directly into outputs in exposed memory.
  const std::shared_ptr<ExposedTable>& exposed() const { return exposed_; }

  // Whether stores to all others become visible as whole lines (Platform::why_no_whole_lines); equal at all ranks.
  void set_ll128(bool ll128) { ll128_ = ll128; }
  bool ll128() const { return ll128_; }

  // Why no fused kernel can serve the call; the same at all ranks.
  std::optional<std::string> why_unavailable(const CollectiveCall& call, DataType type) const;
  // The method without a measurement.
  fused::Method default_method(const CollectiveCall& call, DataType type) const;
  // Throws unavailable or invalid_input before anything is enqueued. A kernel traps if it waits in vain for a rank, or
  // if a rank is in another operation. `as`: the description for the others, if not this call.
  void enqueue(const CollectiveCall& call, DataType type, ReduceOp op, ConstRegion input, Region output, Stream& stream,
               const fused::KernelShape& shape, const on_stream::Description* as = nullptr);

  // Waits for the stream. Throws, naming the rank for which an operation has waited in vain.
  void synchronize(Stream& stream, Deadline deadline);
  // The error of a failed operation, if any. `stopped`: why stop() was called. Callable from any thread.
  std::optional<Error> failure(const std::string& stopped, std::span<const int> in_job = {}) const;
  // Ends all waits inside kernels for good: they trap.
  void stop() noexcept;
  // From now on kernels that give up set `word`, in the GPU's memory as they reach it, and end in place of trapping;
  // where it is set they end at once.
  void keep_context(std::uint32_t* word) noexcept { on_stream::keep_context(notice(), word); }
  // For the waits of later operations.
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
