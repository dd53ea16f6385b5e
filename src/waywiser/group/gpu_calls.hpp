#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/collective/host_collectives.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/group/exchange.hpp"
#include "waywiser/group/group_messages.hpp"

namespace waywiser {

class DeviceExecution;
class GpuCollectives;
class Stream;

// The calls of one group that its GPUs carry out, and those on streams that the hosts carry out in their place.
class GpuCalls {
 public:
  GpuCalls(HostCollectives& hosts, GroupMessages& messages, std::shared_ptr<ExposedMemory> exposed);
  GpuCalls(const GpuCalls&) = delete;
  GpuCalls& operator=(const GpuCalls&) = delete;
  ~GpuCalls();

  // `wanted` without rank and ranks. True: complete, or with a stream enqueued. False: nothing has happened, the hosts
  // have to; then before_hosts() comes first where there is a stream.
  bool collective(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output, Stream* stream);
  void before_hosts(const Call& call, Stream& stream);

  void send(ConstElements data, int to, Stream& stream);
  void recv(Elements data, int from, Stream& stream);
  void sendrecv(ConstElements data, int to, Elements into, int from, Stream& stream);
  void exchange(std::span<const Exchange> neighbors, Stream& stream);
  void prepare(Place gpu, Bytes largest);
  // For what is prepared: sets the GPU up, by all ranks together. Throws as prepare().
  GpuCollectives& of(Place gpu) { return gpus_of(gpu, false); }
  // Null: in the stream of calls without one, for which synchronize() waits.
  void start(DeviceExecution& prepared, Stream* stream);
  void synchronize();
  void end_prepared() noexcept;
  // Waits for the stream, and throws what an operation of this group has failed with on any stream.
  void synchronize(Stream& stream);

  // Why collectives go through host memory; empty while they do not.
  std::string why_staged() const;
  void set_way(std::optional<GpuAlgorithm> way);

 private:
  GpuCollectives& gpus_of(Place gpu, bool capturing);
  bool by_kernels(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output, Stream* stream);
  bool by_messages(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                   Stream& stream);
  bool exchange_blocks(const Call& call, const std::vector<ConstRegion>& give, const std::vector<Region>& take,
                       Stream& stream);
  bool exchange_by_kernels(const Call& call, std::span<const Exchange> neighbors, Stream& stream);
  bool message(const Call& call, ConstElements data, int to, Elements into, int from, Stream& stream);
  void finish(GpuCollectives& gpus, Stream& stream, const Call& call);

  HostCollectives& hosts_;
  GroupMessages& messages_;
  Session& session_;
  const std::shared_ptr<ExposedMemory> exposed_;
  std::optional<GpuAlgorithm> way_;          // nothing: the choice
  std::shared_ptr<GpuCollectives> on_gpus_;  // since the first collective on them
};

}  // namespace waywiser
