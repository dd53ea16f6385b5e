#include "waywiser/collective/on_stream/guard.hpp"

#include <atomic>
#include <cstring>

#include "waywiser/comm/session/kept_failure.hpp"

namespace waywiser::on_stream {
namespace {

void run_on_host(const GuardArguments& guard) {
  const auto is_set = [](const std::uint32_t* word) {
    return std::atomic_ref(*const_cast<std::uint32_t*>(word)).load(std::memory_order_acquire) != 0;
  };
  if (!is_set(guard.failed) && (guard.told == nullptr || !is_set(guard.told))) return;
  std::atomic_ref(*guard.failed).store(1, std::memory_order_release);
  if (guard.bytes != 0) std::memset(guard.data, 0xff, guard.bytes);
}

}  // namespace

void guard(const KeptFailure& kept, std::span<const Region> outputs, bool asks_host, Stream& stream) {
  for (const Region& output : outputs) {
    if (output.bytes == 0) continue;
    const GuardArguments terms{kept.on_gpu(), asks_host ? kept.of_host() : nullptr, stream.reach(output), output.bytes};
    Kernel kernel{1, 1, {}, {}};
    if (stream.native() != nullptr)
      kernel.cuda = cuda_guard_launcher(terms);
    else
      kernel.body = [terms](const ThreadContext&) { run_on_host(terms); };
    stream.launch(kernel);
  }
}

}  // namespace waywiser::on_stream
