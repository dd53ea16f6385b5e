// One-sided calls that a kernel makes, all calls of a sample in one kernel; on hosts a thread makes them.
#include <optional>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/bench/exercise.hpp"
#include "waywiser/bench/from_kernel/kernel_calls.hpp"
#include "waywiser/heap/device/host_heap_block.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/heap/message_protocols.hpp"

namespace waywiser {
namespace {

using one_sided::KernelCalls;
using Kind = KernelCalls::Kind;

std::optional<Kind> kind_named(std::string_view name) {
  if (name == "put") return Kind::put;
  if (name == "get") return Kind::get;
  if (name == "signal") return Kind::signal;
  if (name == "atomics") return Kind::atomics;
  if (name == "barrier") return Kind::barrier;
  if (name == "put_message") return Kind::message;
  return {};
}

class KernelExercise : public Exercise {
 public:
  KernelExercise(const Bench& bench, const BenchRequest& request, Kind kind)
      : Exercise(bench, request),
        kind_(kind),
        place_(bench.place(request.output)),
        given_(bench.platform, place_, request.bytes),
        taken_(bench.platform, place_, request.bytes),
        heap_(group_, "bench", place_, KernelCalls::data_at + request.bytes + room_for_inbox(request, kind)),
        team_(heap_.world()),
        stream_(bench.platform.open_stream(place_)) {
    if (request.way.empty()) return;
    only_ = only_protocol(request.way);
    if (only_->lines != 0 && !heap_.why_no_lines().empty())
      throw Error(ErrorKind::unavailable, "messages by LL128: " + heap_.why_no_lines());
  }

  void prepare(std::uint64_t seed) override {
    seed_ = seed;
    if (kind_ != Kind::put && kind_ != Kind::get && kind_ != Kind::message) return;
    given_.fill(0, request_.bytes, seed);
    if (kind_ == Kind::get) copy(in_heap(), region_of(given_));
  }
  void run(int calls) override {
    KernelCalls task;
    task.kind = kind_;
    task.team = team_.terms();
    task.data = stream_->reach(region_of(kind_ == Kind::get ? taken_ : given_));
    task.bytes = request_.bytes;
    task.inbox = {KernelCalls::data_at + request_.bytes, request_.bytes};
    task.first = made_ + 1;
    task.calls = static_cast<std::uint64_t>(calls);
    made_ += task.calls;
    launch(task);
    heap_.synchronize(*stream_);
    if (kind_ == Kind::put || kind_ == Kind::get || kind_ == Kind::atomics) group_.barrier();
  }
  void check() override {
    if (kind_ == Kind::get && group_.rank() == 0) check_bytes(taken_);
    if (group_.rank() > 1 || (group_.rank() == 0 && kind_ != Kind::message)) return;
    if (kind_ == Kind::put || kind_ == Kind::message) {
      copy(region_of(taken_), in_heap());
      check_bytes(taken_);
    }
    if (kind_ != Kind::signal && kind_ != Kind::atomics) return;
    const Bytes at = kind_ == Kind::signal ? KernelCalls::signal_at : KernelCalls::atomics_at;
    std::uint64_t seen = 0;
    copy({reinterpret_cast<std::byte*>(&seen), sizeof seen, host(0)}, heap_.local().slice(at, sizeof seen));
    if (seen != made_)
      throw Error(ErrorKind::corrupt, request_.operation + " from a kernel: the word is " + std::to_string(seen) +
                                          ", not " + std::to_string(made_));
  }

 private:
  void call() override {}
  Region region_of(const BenchBuffer& buffer) const { return buffer.bytes().region; }
  Region in_heap() const { return heap_.local().slice(KernelCalls::data_at, request_.bytes); }
  void copy(Region to, ConstRegion from) {
    stream_->copy(to, from);
    stream_->synchronize(Deadline::in(group_.timeout()));
  }
  void check_bytes(BenchBuffer& buffer) {
    buffer.check(0, request_.bytes, seed_, request_.operation + " of " + std::to_string(request_.bytes) + " bytes");
  }
  void launch(KernelCalls task) {
    task.terms = place_.is_gpu() ? heap_.terms(*stream_) : heap_.terms();
    if (only_) task.terms.protocols = *only_;
    const auto body = [task] {
      std::byte staging[4096];
      one_sided::HostStagedBlock gpu(staging, sizeof staging);
      one_sided::make_kernel_calls(gpu, task);
    };
    if (place_.is_gpu()) {
      stream_->launch({1, 1, [body](const ThreadContext&) { body(); }, one_sided::cuda_launcher(task)});
    } else {
      try {
        body();
      } catch (const Trap&) {
        heap_.check();
      }
    }
  }

  // For every protocol.
  static Bytes room_for_inbox(const BenchRequest& request, Kind kind) {
    if (kind != Kind::message) return 0;
    return one_sided::inbox_bytes({request.bytes, request.bytes}, request.bytes);
  }

  const Kind kind_;
  const Place place_;
  BenchBuffer given_, taken_;
  Heap heap_;
  HeapTeam team_;
  std::unique_ptr<Stream> stream_;
  std::optional<one_sided::Protocols> only_;  // empty: as the plan says
  std::uint64_t seed_ = 0, made_ = 0;
};

// Known before anything is sent: all ranks refuse.
void check_memory(const Bench& bench, const BenchRequest& request) {
  if (request.input != request.output || request.input == "exposed")
    throw Error(ErrorKind::unavailable, "a heap is in the memory of the hosts or of the GPUs: write host or gpu");
  if (request.input == "gpu" && bench.platform.backend() == "cuda" && bench.platform.gpu_count() < bench.group.size())
    throw Error(ErrorKind::unavailable,
                "kernels of ranks that share a GPU take turns: " + std::to_string(bench.group.size()) + " ranks, and " +
                    std::to_string(bench.platform.gpu_count()) + " GPUs");
}

}  // namespace

std::unique_ptr<Exercise> make_kernel_exercise(const Bench& bench, const BenchRequest& request) {
  if (request.mode != CallMode::kernel) return nullptr;
  const std::optional<Kind> kind = kind_named(request.operation);
  if (!kind) throw Error(ErrorKind::unavailable, request.operation + " is not timed from inside a kernel");
  if (!request.way.empty() && *kind != Kind::message)
    throw Error(ErrorKind::unavailable, request.operation + " from a kernel has one way");
  check_memory(bench, request);
  return std::make_unique<KernelExercise>(bench, request, *kind);
}

}  // namespace waywiser
