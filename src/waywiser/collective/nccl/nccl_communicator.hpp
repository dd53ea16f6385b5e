#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/nccl/nccl_library.hpp"
#include "waywiser/comm/data_type.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

// NCCL's collectives for one group, one CUDA GPU for each rank. NCCL connects in its first calls, and blocks if a rank
// is missing: those calls run on a thread that can be abandoned.
class NcclCommunicator {
 public:
  // Waits until `done` returns true, or throws when waiting is useless.
  using Waiter = std::function<void(const std::function<bool()>& done)>;

  // Collective, with the id from one rank. `stream` is a stream of the GPU. Throws device, and the errors of `wait`.
  NcclCommunicator(const NcclUniqueId& id, int rank, int ranks, std::shared_ptr<Stream> stream, const Waiter& wait);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator();

  // Why NCCL does not support this operation, type and reduction; empty: it does. The same at all ranks.
  static std::optional<std::string> why_not(const CollectiveCall& call, DataType type);
  // Whether a call of this kind has been made: the first one cannot be captured in a graph.
  bool warm(Collective operation) const noexcept { return (warm_ >> static_cast<unsigned>(operation) & 1u) != 0; }
  void enqueue(const CollectiveCall& call, DataType type, ReduceOp op, ConstRegion input, Region output, Stream& stream,
               const Waiter& wait);
  // Throws device with NCCL's asynchronous error.
  void check() const;
  // Ends all work under way; afterwards the communicator is unusable.
  void abort() noexcept;
  // The same after a trap on the GPU: NCCL can no longer clean up.
  void abandon() noexcept;

 private:
  struct Shared;  // with an abandoned thread

  std::shared_ptr<Shared> shared_;
  unsigned warm_ = 0;
};

}  // namespace waywiser
