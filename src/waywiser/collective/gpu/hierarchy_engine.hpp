#pragma once

#include <vector>

#include "waywiser/collective/gpu/host_engine.hpp"
#include "waywiser/collective/gpu/kernel_engine.hpp"
#include "waywiser/collective/gpu/stream_engine.hpp"

namespace waywiser {

// Collectives of ranks in several kernel domains: kernels within each, the hosts between them (Hierarchy).
class HierarchyEngine final : public StreamEngine {
 public:
  HierarchyEngine(Session& session, KernelEngine& kernels, HostEngine& hosts, StreamOrder& order)
      : session_(session), kernels_(kernels), hosts_(hosts), order_(order) {}

  std::string why_not(const GpuAlgorithm& way, const CollectiveCall& call) const override;
  GpuAlgorithm default_way(const CollectiveCall&) const override { return {GpuAlgorithm::Engine::hierarchy, {}, 0, 0}; }
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
               Stream& stream) override;

 private:
  Region scratch(Bytes bytes);

  Session& session_;
  KernelEngine& kernels_;
  HostEngine& hosts_;
  StreamOrder& order_;
  std::vector<Memory> scratch_;  // the last one, and those in use by earlier calls
};

}  // namespace waywiser
