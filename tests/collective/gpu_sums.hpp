#pragma once

#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

constexpr Seconds memory_patience = 60;
constexpr Bytes mib = Bytes{1} << 20;

// The memory that this library has set aside on the rank's GPU, if the test has no array there.
inline Bytes set_aside(Group& group, int gpu_index) { return group.platform()->allocated_memory(gpu_index); }

// The sum of ones, on the GPU and on a stream of its own.
inline void sum_ones(Group& group, int gpu_index, Bytes bytes, Stream& stream) {
  const Place place = gpu(gpu_index);
  const Memory on_gpu = group.platform()->allocate(place, bytes, Allocation::gpu);
  const Memory pinned = group.platform()->allocate(host(0), bytes, Allocation::pinned);
  const Region there = on_gpu.region().slice(0, bytes), here = pinned.region().slice(0, bytes);
  auto* const values = reinterpret_cast<std::int32_t*>(here.data);
  std::fill_n(values, bytes / 4, 1);
  stream.copy(there, here);
  stream.synchronize(Deadline::in(memory_patience));
  const Elements all(there, DataType::int32);
  group.all_reduce(all, all, ReduceOp::sum, Mode::on(stream));
  stream.copy(here, there);
  if (stream.capturing())
    stream.synchronize(Deadline::in(memory_patience));
  else
    group.synchronize(stream);
  for (std::size_t i = 0; i < bytes / 4; ++i)
    require_that(values[i] == group.size(), "the sum of " + std::to_string(bytes) + " bytes");
}

inline void sums_of_all_sizes(Group& group, int gpu_index) {
  const auto stream = group.platform()->open_stream(gpu(gpu_index));
  for (const Bytes bytes : {Bytes{8}, Bytes{8192}, Bytes{100000}, mib}) sum_ones(group, gpu_index, bytes, *stream);
}

}  // namespace waywiser
