// Heat on a ring that is cut into one part for each rank: all steps of a rank are one kernel, which puts its border
// cells into its neighbours' memory and waits for theirs. The kernel's body is one source for GPUs and for virtual
// GPUs.
//   waywiser run -n 4 build/examples/11_one_sided        (virtual GPUs; 11_one_sided_cuda: GPUs)
#include <cmath>
#include <cstdio>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/waywiser.hpp"
#if defined(__CUDACC__)
#include "waywiser/one_sided.cuh"
#else
#include "waywiser/heap/device/host_heap_block.hpp"
#include "waywiser/heap/device/one_sided.hpp"
#endif

using namespace waywiser;
using namespace waywiser::one_sided;

constexpr int cells = 1000, steps = 200;  // of each rank
constexpr unsigned threads = 256;

// A heap: signals of the left and the right neighbour, and two rows of cells with a ghost at each end.
constexpr Bytes from_left = 0, from_right = 8, rows = 64, row_bytes = (cells + 2) * sizeof(double);

template <typename Gpu>
WAYWISER_DEVICE void heat(const OneSided<Gpu>& ranks) {
  const int right = (ranks.rank() + 1) % ranks.size(), left = (ranks.rank() + ranks.size() - 1) % ranks.size();
  auto* told_left = ranks.template at<std::uint64_t>(from_left);
  auto* told_right = ranks.template at<std::uint64_t>(from_right);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const double* now = ranks.template at<double>(rows + (step + 1) % 2 * row_bytes);
    auto* next = ranks.template at<double>(rows + step % 2 * row_bytes);
    ranks.gpu().each_thread([&](unsigned thread) {
      for (int i = 1 + static_cast<int>(thread); i <= cells; i += static_cast<int>(threads))
        next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1];
    });
    // The left neighbour's right ghost, and the right one's left ghost.
    ranks.template put_with_signal<Scope::block>(next + cells + 1, next + 1, 1, told_right, step, SignalOp::set, left);
    ranks.template put_with_signal<Scope::block>(next, next + cells, 1, told_left, step, SignalOp::set, right);
    ranks.template wait_until<Scope::block>(told_left, Comparison::ge, step, left);
    ranks.template wait_until<Scope::block>(told_right, Comparison::ge, step, right);
  }
}

#if defined(__CUDACC__)
__global__ void heat_kernel(const __grid_constant__ HeapTerms terms) {
  CudaHeapBlock block;
  heat(OneSided<CudaHeapBlock>(block, terms));
}

static JoinOptions with_gpus() { return usual_options(); }

static void launch_heat(Stream& stream, const HeapTerms& terms) {
  stream.launch({1, threads, {}, [&](void* native) {
                   heat_kernel<<<1, threads, 0, static_cast<cudaStream_t>(native)>>>(terms);
                   if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
                     throw Error(ErrorKind::device, cudaGetErrorString(error));
                 }});
}
#else
static JoinOptions with_gpus() {
  JoinOptions options = usual_options();
  VirtualMachine machine;
  machine.gpus = 8;
  options.platform = open_virtual_platform(machine);
  return options;
}

static void launch_heat(Stream& stream, const HeapTerms& terms) {
  const auto body = [terms](const ThreadContext&) {
    HostHeapBlock block(0, 1, threads);
    heat(OneSided<HostHeapBlock>(block, terms));
  };
  stream.launch({1, 1, body, {}});
}
#endif

static std::vector<double> at_first(int ranks) {
  std::vector<double> ring(static_cast<std::size_t>(ranks) * cells);
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i] = static_cast<double>(i * i % 1009);
  return ring;
}

static std::vector<double> serial(int ranks) {
  std::vector<double> now = at_first(ranks), next(now.size());
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < now.size(); ++i)
      next[i] = 0.25 * now[(i + now.size() - 1) % now.size()] + 0.5 * now[i] + 0.25 * now[(i + 1) % now.size()];
    now.swap(next);
  }
  return now;
}

static bool run(Group& group) {
  Platform& platform = *group.platform();
  const Place gpu_here = gpu(group.rank() % platform.gpu_count());
  const Heap heap(group, "heat", gpu_here, rows + 2 * row_bytes);
  const auto stream = platform.open_stream(gpu_here);
  const Memory pinned = platform.allocate(host(0), row_bytes, Allocation::pinned);
  auto* row = reinterpret_cast<double*>(pinned.region().data);

  const std::vector<double> first = at_first(group.size()), wanted = serial(group.size());
  const std::size_t mine = static_cast<std::size_t>(group.rank()) * cells;
  for (std::size_t i = 0; i < cells + 2; ++i) row[i] = first[(mine + i + first.size() - 1) % first.size()];
  stream->copy(heap.local().slice(rows, row_bytes), pinned.region().slice(0, row_bytes));
  launch_heat(*stream, heap.terms(*stream));
  stream->copy(pinned.region().slice(0, row_bytes), heap.local().slice(rows + steps % 2 * row_bytes, row_bytes));
  heap.synchronize(*stream);

  bool right = true;
  for (std::size_t i = 0; i < cells; ++i) right = right && std::fabs(row[i + 1] - wanted[mine + i]) < 1e-9;
  std::printf("rank %d of %d: %d steps in one kernel, %s the serial program\n", group.rank(), group.size(), steps,
              right ? "as" : "unlike");
  group.barrier();
  return right;
}

int main() {
  try {
    Group group = Group::join(with_gpus());
    const bool right = run(group);
    group.close();
    return right ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "11_one_sided: %s\n", error.what());
    return 2;
  }
}
