#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/collective/device_schedule/prepared_schedules.hpp"
#include "waywiser/collective/gpu/copy_engine.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/collective/gpu/hierarchy_engine.hpp"
#include "waywiser/collective/gpu/host_engine.hpp"
#include "waywiser/collective/gpu/kernel_engine.hpp"
#include "waywiser/collective/gpu/nccl_engine.hpp"
#include "waywiser/collective/gpu/stream_order.hpp"
#include "waywiser/collective/gpu/symmetric_engine.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/comm/session/watchdog.hpp"

namespace waywiser {

class KeptFailure;

// The operations of one group on GPU arrays, one GPU for each rank: collectives, each by the engine that its way names;
// messages and prepared schedules by kernels. The choice for a call is the same at all ranks; for a message, at both
// ends.
class StreamOperations : private ExposedMemory::Watcher, private Watchdog::Ward {
 public:
  // Extra time beyond the timeout of a wait, in which a kernel itself reports the rank that it waited for.
  static constexpr Seconds kernels_speak = 2;

  // Collective: afterwards the ranks agree on what can be used.
  StreamOperations(HostCollectives& hosts, Place gpu, std::shared_ptr<ExposedMemory> exposed);
  StreamOperations(const StreamOperations&) = delete;
  StreamOperations& operator=(const StreamOperations&) = delete;
  ~StreamOperations() override;

  Place gpu() const noexcept { return order_.gpu(); }
  // For calls without a stream, complete or only begun.
  Stream& stream() { return *order_.own(); }
  // The ranks whose messages go by kernels.
  const KernelDomain& domain() const noexcept { return kernels_.domain(); }

  // The way of a call, the same at all ranks: the one set, the plan's, or the default. Sets nothing up.
  GpuAlgorithm way_of(const CollectiveCall& call) const;
  // Collective: the same, once what it needs is set up, or has turned out not to be usable. Throws unavailable: no way
  // that may be taken carries out the call, or, in a stream that is being captured, something would have to be set up.
  GpuAlgorithm ready_way(const CollectiveCall& call, bool capturing);
  // In a ready way.
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output, Stream& stream);
  // Enqueues parts that the hosts carry out, see HostEngine::run.
  void enqueue_by_hosts(const Call& call, const std::string& why, ProxyOperation::Parts parts, Stream& stream,
                        const std::function<void()>& meanwhile = {});
  // Collective: sets memory aside, so that no operation of up to `largest` bytes a block waits for that.
  void prepare(Bytes largest);
  // For measuring: the only way until another one is set; empty: the group chooses.
  void set_algorithm(std::optional<GpuAlgorithm> way, std::optional<MessageAlgorithm> of_messages,
                     std::optional<ProgramAlgorithm> of_programs);
  // Whether the hosts still compare the ranks' calls; no result is valid before that is complete.
  bool is_comparing() { return nccl_.is_comparing(); }
  // The call that was enqueued on stream() last goes on there. `self`: this object.
  std::shared_ptr<Activity> begun(const std::shared_ptr<StreamOperations>& self, const Call& call);
  // Messages by kernels; only with ranks that domain() reaches.
  void enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream);
  void enqueue_messages(std::span<const PeerMessage> messages, const OwnBlock& own, Stream& stream);
  // Schedules by kernels; only if those serve the whole group. enqueue_prepared() starts a prepared schedule;
  // end_prepared() waits for it before it is destroyed.
  PreparedSchedules& prepared() { return prepared_; }
  void enqueue_prepared(DeviceExecution& execution, Stream& stream);
  void end_prepared() noexcept;
  // Throws the error of a failed operation: timeout, invalid_input or io; it names the rank that did not come or that
  // is in another operation.
  void check();
  // Ends all waits on this GPU.
  void stop() noexcept override;
  // The same; when it returns, the work enqueued on the stream has ended, or has had time to end.
  void stop(Stream& stream) noexcept;

 private:
  StreamEngine& engine_of(const GpuAlgorithm& way) const { return *engines_[static_cast<std::size_t>(way.engine)]; }
  GpuAlgorithm default_way(const CollectiveCall& call) const;
  // Surround everything that is enqueued on a stream. `outputs`: what it writes for the caller.
  void begin(Stream& stream);
  void end(Stream& stream, std::span<const Region> outputs, bool by_nccl = false);
  std::optional<Error> failure(const std::string& group) const override;
  bool is_gone() const override;
  void settle() override;
  void let_go() noexcept override;
  void came(unsigned slot, const ExposedMemory::Window& window) override;
  void went(unsigned slot, const ExposedMemory::Window& window) noexcept override;

  Session& session_;
  const std::shared_ptr<const Members> members_;
  StreamOrder order_;
  KernelEngine kernels_;
  NcclEngine nccl_;
  HostEngine by_hosts_;
  HierarchyEngine hierarchy_;
  CollectiveCopyEngine copies_;
  SymmetricEngine symmetric_;
  KeptFailure* const kept_;                     // nullptr: a failure traps
  const std::array<StreamEngine*, 6> engines_;  // by GpuAlgorithm::Engine
  const PlannedGpuAlgorithms planned_;
  std::optional<GpuAlgorithm> only_;
  PreparedSchedules prepared_;
  bool watched_ = false, thrown_ = false;  // by the watchdog; the error
  bool let_go_ = false;
  std::shared_ptr<ExposedMemory> exposed_;
  // Arrays into which enqueued calls may store, or which they announce to others, until they have ended.
  struct Leaving {
    std::unique_ptr<Event> end;
    std::shared_ptr<const void> mapped;
  };
  std::vector<Leaving> leaving_;
};

}  // namespace waywiser
