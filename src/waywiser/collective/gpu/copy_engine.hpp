#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/collective/gpu/copy_steps.hpp"
#include "waywiser/collective/gpu/kernel_engine.hpp"
#include "waywiser/collective/gpu/stream_engine.hpp"
#include "waywiser/collective/gpu/stream_order.hpp"
#include "waywiser/collective/on_stream/copy_pipeline.hpp"

namespace waywiser {

// Long collectives by copy engines, where kernels serve all ranks of the group: data move by copies into memory of the
// receiver, in pieces; kernels only let the ranks wait for each other and add up.
class CollectiveCopyEngine final : public StreamEngine {
 public:
  CollectiveCopyEngine(RankExchange& exchange, Session& session, KernelEngine& kernels, StreamOrder& order);

  std::string why_not(const GpuAlgorithm& way, const CollectiveCall& call) const override;
  GpuAlgorithm default_way(const CollectiveCall&) const override { return {GpuAlgorithm::Engine::copies, {}, 0, 0}; }
  bool prepare(const GpuAlgorithm& way, const CollectiveCall& call, bool capturing) override;
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
               Stream& stream) override;

 private:
  std::string set_up(const CollectiveCall& call);
  void keep_own_block(const CollectiveCall& call, ConstRegion input, Region output);
  void push(const CopyStep& step, std::size_t number, ConstRegion input, Region output, Stream& stream);
  void take(const CollectiveCall& call, const CopyStep& step, std::size_t number, ConstRegion input, Region output,
            Stream& stream);

  RankExchange& exchange_;
  Session& session_;
  KernelEngine& kernels_;
  StreamOrder& order_;
  const int rank_, ranks_;
  bool tried_ = false;
  std::string why_unusable_;  // once tried
  CopyLanding landing_;
  std::vector<Region> landings_;  // of all ranks
  std::unique_ptr<LaunchCache> sums_;
  std::unique_ptr<CopyPipeline> pipeline_;
};

}  // namespace waywiser
