#include "waywiser/collective/on_stream/stream_gate.hpp"

#include <atomic>
#include <new>

#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/collective/on_stream/gate_kernel.hpp"
#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser {

StreamGate::StreamGate(Platform& platform, Place gpu, int rank)
    : rank_(rank), memory_(platform.allocate(platform.nearest_host(gpu.index), sizeof(Words), Allocation::pinned)) {
  new (memory_.region().data) Words();
}

StreamGate::Words& StreamGate::words() const { return *reinterpret_cast<Words*>(memory_.region().data); }

std::uint64_t StreamGate::close(Stream& stream, const std::string& what, Seconds deadline) {
  auto* reached = reinterpret_cast<Words*>(stream.reach(memory_.region().slice(0, sizeof(Words))));
  const on_stream::GateArguments gate{&reached->open, &reached->notice, ++last_,
                                      static_cast<std::uint64_t>(deadline * 1e9)};
  {
    const std::lock_guard lock(mutex_);
    waiting_[last_] = {what, deadline};
  }
  Kernel kernel{1, 1, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = on_stream::cuda_gate_launcher(gate);
  else
    kernel.body = [gate](const ThreadContext&) {
      block::HostBlock block(0, 1, 1);
      on_stream::wait_at_gate(block, gate);
    };
  stream.launch(kernel);
  return last_;
}

void StreamGate::open(std::uint64_t number) {
  std::atomic_ref(words().open).store(number, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  waiting_.erase(number);
}

std::optional<Error> StreamGate::failure(const std::string& stopped) const {
  const auto failed = on_stream::failure_in(words().notice);
  if (!failed) return {};
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(failed->number);
  const Waiting waiting = found == waiting_.end() ? Waiting{"a call", 0} : found->second;
  const std::string me = "rank " + std::to_string(rank_);
  if (failed->reason == block::Reason::late)
    return Error(ErrorKind::timeout, me + ": the host has not carried out " + waiting.what + " on a stream within " +
                                         format_seconds(waiting.deadline));
  return Error(ErrorKind::io,
               me + " has given up " + waiting.what + " on a stream" + (stopped.empty() ? "" : ": " + stopped));
}

void StreamGate::stop() noexcept { on_stream::stop(words().notice); }

}  // namespace waywiser
