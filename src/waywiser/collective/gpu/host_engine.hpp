#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "waywiser/collective/gpu/kernel_domain.hpp"
#include "waywiser/collective/gpu/stream_engine.hpp"
#include "waywiser/collective/gpu/stream_order.hpp"
#include "waywiser/collective/host_collectives.hpp"
#include "waywiser/collective/on_stream/stream_gate.hpp"
#include "waywiser/collective/proxy/proxied_collective.hpp"
#include "waywiser/collective/proxy/proxy_operation.hpp"

namespace waywiser {

// What the hosts carry out while a stream waits and the caller does not: whole collectives, the parts of a hierarchy
// between its domains, and messages. Serves every call, but no stream that is being captured: throws unavailable there.
class HostEngine final : public StreamEngine {
 public:
  HostEngine(HostCollectives& hosts, const KernelDomain& domain, StreamOrder& order)
      : hosts_(hosts), session_(hosts.core().session()), domain_(domain), order_(order) {}

  std::string why_not(const GpuAlgorithm&, const CollectiveCall&) const override { return {}; }
  GpuAlgorithm default_way(const CollectiveCall&) const override { return {}; }
  // With the schedule that the hosts would use without a stream.
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
               Stream& stream) override;
  std::optional<Error> failure(const std::string& group) const override;
  void stop() noexcept override;

  // Throws unavailable if the stream is being captured. `why`: the reason why no kernel serves the call.
  static void refuse_capture(const Call& call, const std::string& why, const Stream& stream);
  // `meanwhile`, if set, enqueues work for kernels at the same time.
  void run(const Call& call, const std::string& why, ProxyOperation::Parts parts, Stream& stream,
           const std::function<void()>& meanwhile = {});
  void run(const Call& call, std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays, Stream& stream);

 private:
  void set_up_gate();
  void make_room(const Call& call);

  HostCollectives& hosts_;
  Session& session_;
  const KernelDomain& domain_;
  StreamOrder& order_;
  mutable std::mutex mutex_;              // guards the setting of gate_, for other threads
  std::shared_ptr<StreamGate> gate_;      // since the first call
  std::optional<StreamStaging> staging_;  // likewise
};

}  // namespace waywiser
