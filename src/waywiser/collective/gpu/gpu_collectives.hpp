#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/device_schedule/prepared_schedules.hpp"
#include "waywiser/collective/gpu/call_comparison.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/collective/gpu/kernel_domain.hpp"
#include "waywiser/collective/nccl/nccl_communicator.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/stream_gate.hpp"
#include "waywiser/collective/proxy/proxied_collective.hpp"
#include "waywiser/collective/proxy/proxy_operation.hpp"
#include "waywiser/comm/data_type.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/comm/session/call.hpp"
#include "waywiser/comm/session/watchdog.hpp"

namespace waywiser {

class RankExchange;
class Session;
struct Members;

// The operations of one group on arrays of GPUs, one GPU for each rank: by kernels, by NCCL, or by the hosts while the
// stream waits. What serves a call is the same at all ranks; of a message, at both.
class GpuCollectives : private ExposedMemory::Watcher, private Watchdog::Ward {
 public:
  // By all ranks together: afterwards they agree on what can be used.
  GpuCollectives(RankExchange& exchange, Session& session, std::shared_ptr<const Members> members, Place gpu,
                 std::shared_ptr<ExposedMemory> exposed);
  GpuCollectives(const GpuCollectives&) = delete;
  GpuCollectives& operator=(const GpuCollectives&) = delete;
  ~GpuCollectives() override;

  Place gpu() const noexcept { return gpu_; }
  // Why fused kernels cannot be used, in the words of the first rank that cannot; empty when they can.
  const std::string& why_no_kernels() const noexcept { return domain_.why_not_whole(); }
  // Which messages go by kernels.
  const KernelDomain& domain() const noexcept { return domain_; }

  // What carries the call out, the same at all ranks; nothing: the hosts. The first call that would take NCCL sets it
  // up, by all ranks together; it throws unavailable in a stream that is being captured.
  std::optional<GpuAlgorithm> algorithm_for(RankExchange& exchange, const Members& members, const Call& call,
                                            const CollectiveCall& wanted, bool capturing);
  void enqueue(const Call& call, const GpuAlgorithm& way, const CollectiveCall& wanted, ConstRegion input,
               Region output, Stream& stream);
  // A collective of the hosts, or other parts, for whose results the stream waits. `meanwhile`, if any, enqueues what
  // kernels carry out at the same time. Throws unavailable in a stream that is being captured; `why`: no kernel carries
  // them out.
  void enqueue_by_hosts(const Call& call, std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays,
                        Stream& stream);
  void enqueue_by_hosts(const Call& call, const std::string& why, ProxyOperation::Parts parts, Stream& stream,
                        const std::function<void()>& meanwhile = {});
  // Sets memory aside, by all ranks together, so that no operation of up to `largest` bytes a block waits for that.
  void prepare(RankExchange& exchange, const Members& members, Bytes largest);
  // For measuring: the only way until another one is set; nothing: the choice.
  void set_algorithm(std::optional<GpuAlgorithm> way, std::optional<MessageAlgorithm> of_messages) {
    way_ = way;
    domain_.set_message_algorithm(of_messages);
  }
  // Whether the ranks compare their calls by the host: NCCL carries them out, and no kernel is there beside it.
  bool is_compared_by_host(const GpuAlgorithm& way, int ranks) const {
    return !domain_.is_whole() && ranks > 1 && way.engine == GpuAlgorithm::Engine::nccl;
  }
  // Begun here; goes on while this rank waits for anything. No result counts before it is complete.
  void compare_by_host(const std::shared_ptr<const Members>& members, const Call& call);
  bool is_comparing();
  // Messages by kernels; only with ranks that domain() reaches.
  void enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream);
  void enqueue_messages(std::span<const PeerMessage> messages, Stream& stream);
  // Schedules by kernels; only while there is no reason against kernels. What is prepared is started by
  // enqueue_prepared() and waited for by end_prepared() before it goes.
  PreparedSchedules& prepared() { return prepared_; }
  void enqueue_prepared(DeviceExecution& execution, Stream& stream);
  void end_prepared() noexcept;
  // For calls that come without one.
  Stream& stream() { return *stream_; }
  // Throws what an operation has failed with: timeout, invalid_input or io; it names the rank that did not come or that
  // is in another operation.
  void check();
  // What waits on this GPU gives up; when this returns, what was enqueued on the stream has ended, or has had time to.
  void stop(Stream& stream) noexcept;

 private:
  // More memory for operations of more than 1 MiB a block, by all ranks together, where it saves kernels.
  void enlarge(RankExchange& exchange, const Members& members, const GpuAlgorithm& way, const CollectiveCall& call,
               DataType type, const on_stream::Description& as);
  void enlarge_until(RankExchange& exchange, const Members& members, const on_stream::Description& as,
                     const std::function<bool(const FusedOptions&)>& is_enough);
  using Engine = GpuAlgorithm::Engine;
  // Of what serves the call: what was set, or what the plan says, or the default.
  GpuAlgorithm choose(const CollectiveCall& call, DataType type) const;
  bool can(const GpuAlgorithm& way, const CollectiveCall& call, DataType type) const;
  std::string why_cannot(const GpuAlgorithm& way) const;
  GpuAlgorithm default_way(const CollectiveCall& call, DataType type) const;
  std::string set_up_nccl(RankExchange& exchange, const Members& members, const Call& call);
  NcclCommunicator::Waiter waiter(const Call& call);
  std::optional<Error> failure(const std::string& group) const override;
  bool is_gone() const override;
  void stop() noexcept override;
  void settle() override;
  void let_go() noexcept override;
  // Around what is enqueued on a stream.
  void begin(Stream& stream);
  void end(Stream& stream);
  void note_end(Stream& stream);
  void enqueue_hierarchy(const Call& call, const CollectiveCall& wanted, ConstRegion input, Region output,
                         Stream& stream);
  static void refuse_capture(const Call& call, const std::string& why, const Stream& stream);
  Region scratch(Bytes bytes);
  void set_up_gate();
  void make_room(const Call& call);
  void enqueue_kernels(const GpuAlgorithm& way, const CollectiveCall& call, DataType type, ReduceOp op,
                       ConstRegion input, Region output, Stream& stream, const on_stream::Description* as = nullptr);
  void enqueue_nod(const on_stream::Description& description, int ranks, Stream& stream);
  void enqueue_nccl(const Call& call, const CollectiveCall& wanted, ConstRegion input, Region output, Stream& stream);
  void came(unsigned slot, const ExposedMemory::Window& window) override;
  void went(unsigned slot, const ExposedMemory::Window& window) noexcept override;

  Session& session_;
  Platform& platform_;
  Place gpu_;
  std::shared_ptr<Stream> stream_;
  const PlannedGpuAlgorithms planned_;
  const std::shared_ptr<const Members> members_;
  KernelDomain domain_;
  PreparedSchedules prepared_;
  std::shared_ptr<StreamGate> gate_;      // since the first operation that the hosts have a part in
  std::optional<StreamStaging> staging_;  // of such operations
  std::vector<Memory> scratch_;           // of hierarchies: the last one, and those that earlier calls may use
  std::size_t enlarged_ = 0;              // how many of larger_memories() have been tried
  std::unique_ptr<NcclCommunicator> nccl_;
  bool nccl_tried_ = false;
  std::vector<std::shared_ptr<CallComparison>> comparing_;
  std::optional<GpuAlgorithm> way_;
  std::string why_no_nccl_;
  std::unique_ptr<Event> last_;  // the end of the last call that was enqueued
  // The nod beside NCCL: a stream of its own, and where it begins and ends.
  std::unique_ptr<Stream> nod_stream_;
  std::unique_ptr<Event> nod_begins_, nod_ends_;
  bool watched_ = false, thrown_ = false;  // by the watchdog; what has failed
  bool let_go_ = false;
  mutable std::mutex mutex_;  // of when nccl_, gate_ and last_ come, for the watchdog's thread
  void* last_native_ = nullptr;
  std::shared_ptr<ExposedMemory> exposed_;
  // What calls that had been enqueued may store into, or tell the others of, until they have ended.
  struct Leaving {
    std::unique_ptr<Event> end;
    std::shared_ptr<const void> mapped;
  };
  std::vector<Leaving> leaving_;
};

}  // namespace waywiser
