#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "waywiser/collective/gpu/call_comparison.hpp"
#include "waywiser/collective/gpu/kernel_engine.hpp"
#include "waywiser/collective/gpu/stream_engine.hpp"
#include "waywiser/collective/gpu/stream_order.hpp"
#include "waywiser/collective/nccl/nccl_communicator.hpp"

namespace waywiser {

// Collectives by NCCL. Since NCCL does not compare the ranks' calls, a nod of the kernels does beside it, or, where
// kernels do not serve all ranks, the hosts.
class NcclEngine final : public StreamEngine {
 public:
  NcclEngine(RankExchange& exchange, Session& session, std::shared_ptr<const Members> members, KernelEngine& kernels,
             StreamOrder& order)
      : exchange_(exchange), session_(session), members_(std::move(members)), kernels_(kernels), order_(order) {}

  std::string why_not(const GpuAlgorithm& way, const CollectiveCall& call) const override;
  GpuAlgorithm default_way(const CollectiveCall&) const override { return {GpuAlgorithm::Engine::nccl, {}, 0, 0}; }
  bool prepare(const GpuAlgorithm& way, const CollectiveCall& call, bool capturing) override;
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
               Stream& stream) override;
  void stop() noexcept override;

  // Throws NCCL's asynchronous error.
  void check();
  // Whether the hosts still compare calls: no result is valid before that is complete.
  bool is_comparing();
  // The last comparison that is_comparing() left; nullptr: none.
  std::shared_ptr<const CallComparison> comparison() const;

 private:
  std::string set_up(const Call& call);
  NcclCommunicator::Waiter waiter(const Call& call);
  void guarded(const std::function<void()>& call);
  void compare_by_host(const Call& call);

  RankExchange& exchange_;
  Session& session_;
  const std::shared_ptr<const Members> members_;
  KernelEngine& kernels_;
  StreamOrder& order_;
  mutable std::mutex mutex_;  // guards the setting of nccl_, for other threads
  std::unique_ptr<NcclCommunicator> nccl_;
  bool tried_ = false;
  std::string why_unusable_;  // once tried
  std::vector<std::shared_ptr<CallComparison>> comparing_;
  // The nod beside NCCL: its own stream, and the events of its beginning and end.
  std::unique_ptr<Stream> nod_stream_;
  std::unique_ptr<Event> nod_begins_, nod_ends_;
};

}  // namespace waywiser
