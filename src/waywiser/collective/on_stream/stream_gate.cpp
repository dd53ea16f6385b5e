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

void StreamGate::keep_context(std::uint32_t* word) noexcept { on_stream::keep_context(words().notice, word); }

StreamGate::Words& StreamGate::words() const { return *reinterpret_cast<Words*>(memory_.region().data); }

void StreamGate::launch(Stream& stream, bool waits, Seconds deadline) {
  auto* there =
      reinterpret_cast<Words*>(const_cast<std::byte*>(stream.reach(memory_.region().slice(0, sizeof(Words)))));
  const on_stream::GateArguments gate{
      &there->reached, &there->open, &there->notice, last_, static_cast<std::uint64_t>(deadline * 1e9), waits};
  Kernel kernel{1, 1, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = on_stream::cuda_gate_launcher(gate);
  else
    kernel.body = [gate](const ThreadContext&) {
      block::HostBlock block(0, 1, 1);
      on_stream::wait_at_gate(block, gate);
    };
  stream.launch(kernel);
}

std::uint64_t StreamGate::note(Stream& stream) {
  ++last_;
  launch(stream, false, 0);
  return last_;
}

std::uint64_t StreamGate::close(Stream& stream, const std::string& what, Seconds deadline) {
  {
    const std::lock_guard lock(mutex_);
    waiting_[++last_] = {what, deadline};
  }
  launch(stream, true, deadline);
  return last_;
}

void StreamGate::open(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (const auto found = waiting_.find(number); found != waiting_.end()) found->second.opened = true;
  for (auto first = waiting_.begin(); first != waiting_.end() && first->second.opened; first = waiting_.erase(first))
    std::atomic_ref(words().open).store(first->first, std::memory_order_release);
}

std::uint64_t StreamGate::reached() const noexcept {
  return std::atomic_ref(words().reached).load(std::memory_order_acquire);
}

std::optional<Error> StreamGate::failure(const std::string& stopped) const {
  const auto failed = on_stream::failure_in(words().notice);
  if (!failed) return {};
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(failed->number);
  const Waiting waiting = found == waiting_.end() ? Waiting{"a call"} : found->second;
  const std::string me = "rank " + std::to_string(rank_);
  if (failed->reason == block::Reason::late)
    return Error(ErrorKind::timeout, me + ": the host has not carried out " + waiting.what + " on a stream within " +
                                         format_seconds(waiting.deadline));
  return Error(ErrorKind::io,
               me + " has given up " + waiting.what + " on a stream" + (stopped.empty() ? "" : ": " + stopped));
}

void StreamGate::stop() noexcept { on_stream::stop(words().notice); }

}  // namespace waywiser
