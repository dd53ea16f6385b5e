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

// The operations of one group on GPU arrays, one GPU for each rank: by kernels, by NCCL, or by the hosts while the
// stream waits. The choice for a call is the same at all ranks; for a message, at both ends.
class GpuCollectives : private ExposedMemory::Watcher, private Watchdog::Ward {
 public:
  // Extra time beyond the timeout of a wait, in which a kernel itself reports the rank that it waited for.
  static constexpr Seconds kernels_speak = 2;

  // Collective: afterwards the ranks agree on what can be used.
  GpuCollectives(RankExchange& exchange, Session& session, std::shared_ptr<const Members> members, Place gpu,
                 std::shared_ptr<ExposedMemory> exposed);
  GpuCollectives(const GpuCollectives&) = delete;
  GpuCollectives& operator=(const GpuCollectives&) = delete;
  ~GpuCollectives() override;

  Place gpu() const noexcept { return gpu_; }
  // Why fused kernels cannot be used: the reason of the first rank that cannot; empty: they can.
  const std::string& why_no_kernels() const noexcept { return domain_.why_not_whole(); }
  // The ranks whose messages go by kernels.
  const KernelDomain& domain() const noexcept { return domain_; }

  // The algorithm for a call, the same at all ranks; empty: the hosts. The first call that would use NCCL sets it up,
  // collectively; in a stream that is being captured it throws unavailable.
  std::optional<GpuAlgorithm> algorithm_for(RankExchange& exchange, const Members& members, const CollectiveCall& call,
                                            bool capturing);
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output, Stream& stream);
  // Enqueues a collective of the hosts, or other parts, for whose results the stream waits. `meanwhile`, if set,
  // enqueues work for kernels at the same time. In a stream that is being captured it throws unavailable with `why`,
  // the reason why no kernel serves the call.
  void enqueue_by_hosts(const Call& call, std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays,
                        Stream& stream);
  void enqueue_by_hosts(const Call& call, const std::string& why, ProxyOperation::Parts parts, Stream& stream,
                        const std::function<void()>& meanwhile = {});
  // Collective: sets memory aside, so that no operation of up to `largest` bytes a block waits for that.
  void prepare(RankExchange& exchange, const Members& members, Bytes largest);
  // For measuring: the only algorithm until another one is set; empty: the group chooses.
  void set_algorithm(std::optional<GpuAlgorithm> way, std::optional<MessageAlgorithm> of_messages,
                     std::optional<ProgramAlgorithm> of_programs) {
    way_ = way;
    domain_.set_message_algorithm(of_messages);
    prepared_.set_algorithm(of_programs);
  }
  // Whether the hosts compare the ranks' calls: if NCCL runs them and there are no kernels beside it.
  bool is_compared_by_host(const GpuAlgorithm& way, int ranks) const {
    return !domain_.is_whole() && ranks > 1 && way.engine == GpuAlgorithm::Engine::nccl;
  }
  // Starts the comparison; it progresses while this rank waits for anything. No result is valid before it is complete.
  void compare_by_host(const std::shared_ptr<const Members>& members, const Call& call);
  bool is_comparing();
  // The call that was enqueued on stream() last goes on there. `self`: this object.
  std::shared_ptr<Activity> begun(const std::shared_ptr<GpuCollectives>& self, const Call& call);
  // Messages by kernels; only with ranks that domain() reaches.
  void enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream);
  void enqueue_messages(std::span<const PeerMessage> messages, Stream& stream);
  // Schedules by kernels; only if why_no_kernels() is empty. enqueue_prepared() starts a prepared schedule;
  // end_prepared() waits for it before it is destroyed.
  PreparedSchedules& prepared() { return prepared_; }
  void enqueue_prepared(DeviceExecution& execution, Stream& stream);
  void end_prepared() noexcept;
  // For calls without a stream, complete or only begun.
  Stream& stream() { return *stream_; }
  // Throws the error of a failed operation: timeout, invalid_input or io; it names the rank that did not come or that
  // is in another operation.
  void check();
  // Ends all waits on this GPU.
  void stop() noexcept override;
  // The same; when it returns, the work enqueued on the stream has ended, or has had time to end.
  void stop(Stream& stream) noexcept;

 private:
  // Collective: takes more memory for operations of more than 1 MiB a block if that saves kernels.
  void enlarge(RankExchange& exchange, const Members& members, const GpuAlgorithm& way, const CollectiveCall& call);
  void enlarge_until(RankExchange& exchange, const Members& members, const on_stream::Description& as,
                     const std::function<bool(const FusedOptions&)>& is_enough);
  using Engine = GpuAlgorithm::Engine;
  // The choice among the algorithms that serve the call: the one set, the plan's, or the default.
  GpuAlgorithm choose(const CollectiveCall& call) const;
  bool can(const GpuAlgorithm& way, const CollectiveCall& call) const;
  std::string why_cannot(const GpuAlgorithm& way, const CollectiveCall& call) const;
  GpuAlgorithm default_way(const CollectiveCall& call) const;
  std::string set_up_nccl(RankExchange& exchange, const Members& members, const Call& call);
  NcclCommunicator::Waiter waiter(const Call& call);
  void by_nccl(const std::function<void()>& call);
  std::optional<Error> failure(const std::string& group) const override;
  bool is_gone() const override;
  void settle() override;
  void let_go() noexcept override;
  // Surrounds everything that is enqueued on a stream.
  void begin(Stream& stream);
  void end(Stream& stream);
  void note_end(Stream& stream);
  void enqueue_hierarchy(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream);
  static void refuse_capture(const Call& call, const std::string& why, const Stream& stream);
  Region scratch(Bytes bytes);
  void set_up_gate();
  void make_room(const Call& call);
  void enqueue_kernels(const GpuAlgorithm& way, const CollectiveCall& call, DataType type, ReduceOp op,
                       ConstRegion input, Region output, Stream& stream, const on_stream::Description* as = nullptr);
  void enqueue_nod(const on_stream::Description& description, int ranks, Stream& stream);
  void enqueue_nccl(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream);
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
  std::shared_ptr<StreamGate> gate_;      // since the first operation with a part of the hosts
  std::optional<StreamStaging> staging_;  // for such operations
  std::vector<Memory> scratch_;           // of hierarchies: the last one, and those in use by earlier calls
  std::size_t enlarged_ = 0;              // the number of larger_memories() tried
  std::unique_ptr<NcclCommunicator> nccl_;
  bool nccl_tried_ = false;
  std::vector<std::shared_ptr<CallComparison>> comparing_;
  std::optional<GpuAlgorithm> way_;
  std::string why_no_nccl_;
  std::unique_ptr<Event> last_;  // the end of the last enqueued call
  // The nod beside NCCL: its own stream, and the events of its beginning and end.
  std::unique_ptr<Stream> nod_stream_;
  std::unique_ptr<Event> nod_begins_, nod_ends_;
  bool watched_ = false, thrown_ = false;  // by the watchdog; the error
  bool let_go_ = false;
  mutable std::mutex mutex_;  // for the watchdog's thread: guards the setting of nccl_, gate_ and last_
  void* last_native_ = nullptr;
  std::shared_ptr<ExposedMemory> exposed_;
  // Arrays into which enqueued calls may store, or which they announce to others, until they have ended.
  struct Leaving {
    std::unique_ptr<Event> end;
    std::shared_ptr<const void> mapped;
  };
  std::vector<Leaving> leaving_;
};

}  // namespace waywiser
