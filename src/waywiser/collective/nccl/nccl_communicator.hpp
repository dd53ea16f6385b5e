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

// The collectives of NCCL for one group, one CUDA GPU for each rank. NCCL connects in its first calls, and blocks where
// a rank is missing: those are made on a thread that can be left behind.
class NcclCommunicator {
 public:
  // Waits until `done` says so, or throws when there is no more sense in it.
  using Waiter = std::function<void(const std::function<bool()>& done)>;

  // All ranks together, with the id of one of them. `stream` is one of the GPU. Throws device, and what `wait` throws.
  NcclCommunicator(const NcclUniqueId& id, int rank, int ranks, std::shared_ptr<Stream> stream, const Waiter& wait);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator();

  // Nothing: NCCL has this operation, type and reduction. The same at all ranks.
  static std::optional<std::string> why_not(const CollectiveCall& call, DataType type);
  // Whether a call of this kind has been made: the first cannot be captured in a graph.
  bool warm(Collective operation) const noexcept { return (warm_ >> static_cast<unsigned>(operation) & 1u) != 0; }
  void enqueue(const CollectiveCall& call, DataType type, ReduceOp op, ConstRegion input, Region output, Stream& stream,
               const Waiter& wait);
  // Throws device with what went wrong while NCCL was at work.
  void check() const;
  // Ends what is under way; the communicator is of no use afterwards.
  void abort() noexcept;
  // The same where the GPU has trapped: NCCL cannot clean up any more.
  void abandon() noexcept;

 private:
  struct Shared;  // with a thread that has been left behind

  std::shared_ptr<Shared> shared_;
  unsigned warm_ = 0;
};

}  // namespace waywiser
