#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/collective/host_collectives.hpp"
#include "waywiser/collective/messages/stream_messages.hpp"
#include "waywiser/collective/proxy/proxy_operation.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/group/future.hpp"
#include "waywiser/group/group_messages.hpp"
#include "waywiser/group/prepared.hpp"

namespace waywiser {

class DeviceExecution;
class StreamOperations;
class Stream;

// The calls of one group that its GPUs carry out, and all calls on streams: by kernels or NCCL or, if neither serves,
// by the hosts, while the stream waits and the caller does not.
class GpuCalls {
 public:
  GpuCalls(HostCollectives& hosts, GroupMessages& messages, std::shared_ptr<ExposedMemory> exposed);
  GpuCalls(const GpuCalls&) = delete;
  GpuCalls& operator=(const GpuCalls&) = delete;
  ~GpuCalls();

  // The GPU that takes part in a collective with these arrays; empty: the hosts do it alone.
  static std::optional<Place> gpu_for(const CollectiveCall& wanted, ConstElements input, Elements output,
                                      const Stream* stream);
  bool are_set_up() const noexcept { return on_gpus_ != nullptr; }
  // Collective, whichever calls on GPUs are the first of each rank. `call`: this rank's, for errors.
  void set_up(Place gpu, const Call& call, const Stream* stream);
  // Returns what has only begun; nullptr: complete or, with a GPU stream, enqueued.
  // Empty: nothing has happened; the hosts must do it.
  std::optional<std::shared_ptr<Activity>> collective(CollectiveCall& wanted, Place gpu, ConstElements input,
                                                      Elements output, Mode mode);

  void send(ConstElements data, int to, Stream& stream);
  void recv(Elements data, int from, Stream& stream);
  void sendrecv(ConstElements data, int to, Elements into, int from, Stream& stream);
  void exchange(std::span<const Exchange> neighbors, Stream& stream);
  void prepare(Place gpu, Bytes largest);
  // For prepared operations: sets the GPU up, collectively. Throws like prepare().
  StreamOperations& of(Place gpu) { return gpus_of(gpu, false); }
  // nullptr: in the stream of calls without a stream, for which synchronize() waits.
  void start(DeviceExecution& prepared, Stream* stream);
  void synchronize();
  void end_prepared() noexcept;
  // For calls that neither kernels nor parts on a stream carry out: waits for the stream. Throws unavailable if it is
  // being captured.
  void before_hosts(const Call& call, Stream& stream);
  // Waits for the stream, and throws the error of any failed operation of this group, on any stream.
  void synchronize(Stream& stream);

  // Why collectives go through host memory; empty if they do not.
  std::string why_staged() const;
  void set_algorithm(std::optional<Way> way);

 private:
  StreamOperations& gpus_of(Place gpu, bool capturing);
  // Throws the error of a failed operation on this rank's GPU.
  StreamOperations& gpus_on(Stream& stream);
  void by_messages(const CollectiveCall& wanted, ConstElements input, Elements output, Stream& stream);
  void exchange_blocks(const Call& call, const std::vector<ConstRegion>& give, const std::vector<Region>& take,
                       Stream& stream);
  void message(const Call& call, ConstElements data, int to, Elements into, int from, Stream& stream);
  void exchange_messages(const Call& call, std::vector<PeerMessage> messages, OwnBlock own, Stream& stream);
  Call message_call(const Call& call, CallKind kind, const ConstElements& data, int peer) const;
  ProxyOperation::Parts take_out(const Call& call, std::vector<PeerMessage>& messages, std::string& why);
  StreamOperations& gpus_for(const Call& call, const Stream& stream);
  void finish(StreamOperations& gpus, Stream& stream, const Call& call);
  void await(Stream& stream, const Call& call);

  HostCollectives& hosts_;
  GroupCore& core_;
  GroupMessages& messages_;
  Session& session_;
  const std::shared_ptr<ExposedMemory> exposed_;
  std::optional<Way> algorithm_;               // empty: the group chooses
  std::shared_ptr<StreamOperations> on_gpus_;  // set by the first call on GPUs
};

}  // namespace waywiser
