#pragma once

#include <memory>
#include <string>

#include "waywiser/collective/gpu/kernel_engine.hpp"
#include "waywiser/collective/gpu/stream_engine.hpp"
#include "waywiser/collective/gpu/stream_order.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"

namespace waywiser {

// Long collectives between symmetric arrays, where kernels serve all ranks of the group. Nothing is staged: what only
// moves is copied by the copy engines straight into the outputs of others, what is added up is read by a kernel
// straight from their inputs. The ranks meet on the GPU before and after.
class SymmetricEngine final : public StreamEngine {
 public:
  SymmetricEngine(Session& session, KernelEngine& kernels, StreamOrder& order, const ExposedMemory& exposed);

  std::string why_not(const GpuAlgorithm& way, const CollectiveCall& call) const override;
  GpuAlgorithm default_way(const CollectiveCall&) const override { return {GpuAlgorithm::Engine::symmetric, {}, 0, 0}; }
  // Whether it is taken without being named: whatever the plan says, which knows arrays of no window only.
  bool is_default_of(const CollectiveCall& call) const;
  bool prepare(const GpuAlgorithm& way, const CollectiveCall& call, bool capturing) override;
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
               Stream& stream) override;

 private:
  // The `bytes` at `offset` of an array at a rank, as mapped in this process.
  Region at(int rank, const SymmetricPlace& array, Bytes offset, Bytes bytes) const;
  // To the same place of the outputs of the ranks for which `is_for` holds.
  template <typename IsFor>
  void spread(const CollectiveCall& call, ConstRegion from, Bytes offset, Stream& stream, IsFor is_for) const;
  void move_blocks(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream);
  void broadcast(const CollectiveCall& call, Region data, Stream& stream);
  void all_reduce(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream);
  // Adds up the inputs of all ranks from `offset` on.
  void add_up(const CollectiveCall& call, ConstRegion input, Bytes offset, Region result, Stream& stream);
  void meet(const CollectiveCall& call, Stream& stream);

  Session& session_;
  KernelEngine& kernels_;
  StreamOrder& order_;
  const ExposedMemory& exposed_;
  std::unique_ptr<Stream> beside_;  // with what follows set by prepare(): keeps this rank's own block meanwhile
  std::unique_ptr<Event> begin_, end_;
  std::unique_ptr<LaunchCache> sums_;
};

}  // namespace waywiser
