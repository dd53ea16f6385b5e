#include "waywiser/collective/fused/parts.hpp"

#include <cstdint>

namespace waywiser::fused {

void add_up(Stream& stream, LaunchCache* cache, std::span<const ConstRegion> parts, Region result, DataType type,
            ReduceOp op) {
  SumArguments sum{};
  std::uintptr_t edges = result.bytes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum.parts[i] = stream.reach(parts[i]);
    edges |= reinterpret_cast<std::uintptr_t>(sum.parts[i]);
  }
  sum.result = stream.reach(result);
  sum.bytes = result.bytes;
  sum.ranks = static_cast<std::uint32_t>(parts.size());
  sum.exact = (edges | reinterpret_cast<std::uintptr_t>(sum.result)) % 16 == 0;
  sum.op = op;
  sum.type = type;
  Kernel kernel{1, 1, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = cuda_launcher(cache, sum);
  else
    kernel.body = [=](const ThreadContext&) { run_on_host(sum); };
  stream.launch(kernel);
}

}  // namespace waywiser::fused
