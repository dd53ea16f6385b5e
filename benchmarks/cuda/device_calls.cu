// Calls inside kernels in NVSHMEM's names between two PEs on two GPUs: p, g, atomics, puts with a signal, barriers,
// collectives, and a Jacobi whose kernel puts its border cells. One source for both libraries: CMake compiles it over
// waywiser/nvshmem.h (device_calls) and, where it finds NVSHMEM, over NVSHMEM itself (device_calls_nvshmem);
// benchmarks/device_calls.py starts them in turns. PE 0 prints a line "name bytes threads microseconds" for each row.
// What arrives is compared; a difference ends the program with exit code 1.
#ifdef BESIDE_NVSHMEM
#include <nvshmem.h>
#include <nvshmemx.h>
#else
#include <waywiser/nvshmem.h>
#endif
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int most_threads = 1024;
constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr int lines = 1 << 14, ints_of_line = 32;  // of `g`: each is read once

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "device_calls: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

void require(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "device_calls: %s: what has arrived is wrong\n", what.c_str());
  std::exit(1);
}

#ifdef BESIDE_NVSHMEM
// The ranks of `waywiser run` meet in a file that the script names, since NVSHMEM's launcher need not be there.
void start() {
  const char *file = std::getenv("DEVICE_CALLS_MEET"), *rank = std::getenv("WAYWISER_RANK");
  if (file == nullptr || rank == nullptr) {
    std::fprintf(stderr, "device_calls: start it by benchmarks/device_calls.py\n");
    std::exit(2);
  }
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  const int mine = std::atoi(rank);
  const std::string ready = std::string(file) + ".ready";
  if (mine == 0) {
    if (nvshmemx_get_uniqueid(&id) != 0) std::exit(1);
    std::FILE* to = std::fopen(file, "wb");
    if (to == nullptr || std::fwrite(&id, sizeof id, 1, to) != 1 || std::fclose(to) != 0) std::exit(1);
    if (std::rename(file, ready.c_str()) != 0) std::exit(1);
  } else {
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    std::FILE* from = nullptr;
    while ((from = std::fopen(ready.c_str(), "rb")) == nullptr) {
      if (std::chrono::steady_clock::now() > late) std::exit(1);
      std::this_thread::yield();
    }
    if (std::fread(&id, sizeof id, 1, from) != 1) std::exit(1);
    std::fclose(from);
  }
  check(cudaSetDevice(mine), "cudaSetDevice");
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  if (nvshmemx_set_attr_uniqueid_args(mine, 2, &id, &attributes) != 0) std::exit(1);
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) std::exit(1);
}
#else
void start() {
  nvshmem_init();
  check(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE)), "cudaSetDevice");
}
#endif

// Half a round each; the words grow, so a late value is seen.
__global__ void ping_pong_p(int* words, int rounds, int first) {
  const int mine = nvshmem_my_pe(), other = 1 - mine;
  for (int round = first + 1; round <= first + rounds; ++round) {
    if (mine == 0) nvshmem_int_p(words, round, other);
    nvshmem_int_wait_until(words, NVSHMEM_CMP_GE, round);
    if (mine == 1) nvshmem_int_p(words, round, other);
  }
}

// Each address comes from the value before; no line is read twice.
__global__ void chase_g(const int* chain, int steps, int* end) {
  const int other = 1 - nvshmem_my_pe();
  int at = 0;
  for (int step = 0; step < steps; ++step) at = nvshmem_int_g(chain + at * ints_of_line, other);
  *end = at;
}

__global__ void fetch_add(int* word, int rounds, int* sum) {
  const int other = 1 - nvshmem_my_pe();
  int found = 0;
  for (int round = 0; round < rounds; ++round) found = nvshmem_int_atomic_fetch_add(word + (found < 0), 1, other);
  *sum = found;
}

template <bool each>
__global__ void add(int* word, int rounds) {
  const int other = 1 - nvshmem_my_pe();
  for (int round = 0; round < rounds; ++round) {
    nvshmem_int_atomic_add(word, 1, other);
    if (each) nvshmem_quiet();
  }
  nvshmem_quiet();
}

template <bool warp>
__global__ void __launch_bounds__(most_threads) ping_pong_put(float* to, const float* from, std::size_t count,
                                                              std::uint64_t* signal, int rounds, std::uint64_t first) {
  const int mine = nvshmem_my_pe(), other = 1 - mine;
  for (std::uint64_t round = first + 1; round <= first + static_cast<std::uint64_t>(rounds); ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == mine) {
        if (warp)
          nvshmemx_float_put_signal_warp(to, from, count, signal, round, NVSHMEM_SIGNAL_SET, other);
        else
          nvshmemx_float_put_signal_block(to, from, count, signal, round, NVSHMEM_SIGNAL_SET, other);
      } else {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round);
        __syncthreads();
      }
    }
  }
}

template <bool barrier>
__global__ void meet(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (barrier)
      nvshmemx_barrier_all_block();
    else
      nvshmemx_sync_all_block();
  }
}

enum class Operation { broadcast, fcollect, alltoall, sum };

template <Operation operation>
__global__ void __launch_bounds__(most_threads) collective(float* to, float* from, std::size_t count, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (operation == Operation::broadcast) nvshmemx_float_broadcast_block(NVSHMEM_TEAM_WORLD, to, from, count, 0);
    if (operation == Operation::fcollect) nvshmemx_float_fcollect_block(NVSHMEM_TEAM_WORLD, to, from, count);
    if (operation == Operation::alltoall) nvshmemx_float_alltoall_block(NVSHMEM_TEAM_WORLD, to, from, count);
    if (operation == Operation::sum) nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, to, from, count);
  }
}

// The rows of this PE have a ghost row above and below; the outer ones stay as they are.
__global__ void __launch_bounds__(most_threads)
    jacobi(const float* now, float* next, int rows, int columns, int above, int below) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) + 1;
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) + 1;
  if (column >= columns - 1 || row >= rows - 1) return;
  const std::size_t pitch = static_cast<std::size_t>(columns);
  const float* at = now + static_cast<std::size_t>(row) * pitch + column;
  const float value = 0.25f * (at[-1] + at[1] + at[-columns] + at[columns]);
  next[static_cast<std::size_t>(row) * pitch + column] = value;
  if (row == 1 && above >= 0) nvshmem_float_p(next + static_cast<std::size_t>(rows - 1) * pitch + column, value, above);
  if (row == rows - 2 && below >= 0) nvshmem_float_p(next + column, value, below);
}

struct Run {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  int mine = 0;

  // Microseconds that the kernels of `enqueue` take, once the PEs have met.
  template <typename Enqueue>
  double time(Enqueue enqueue) {
    nvshmemx_barrier_all_on_stream(stream);
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    enqueue();
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaStreamSynchronize(stream), "kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return 1e3 * milliseconds;
  }
  void row(const char* name, std::size_t bytes, int threads, double microseconds) const {
    if (mine == 0) std::printf("%s %zu %d %.4f\n", name, bytes, threads, microseconds);
  }
};

template <typename T>
T* symmetric(std::size_t count) {
  auto* made = static_cast<T*>(nvshmem_calloc(count, sizeof(T)));
  if (made == nullptr) {
    std::fprintf(stderr, "device_calls: no room for %zu bytes\n", count * sizeof(T));
    std::exit(1);
  }
  return made;
}

template <typename T>
std::vector<T> read(const T* from, std::size_t count) {
  std::vector<T> found(count);
  check(cudaMemcpy(found.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return found;
}

void write(float* to, const std::vector<float>& values) {
  check(cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
}

float value_of(int pe, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(pe) * 131) % 1009);
}

std::vector<float> values_of(int pe, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(pe, i);
  return values;
}

void words(Run& run) {
  constexpr int rounds = 1000;
  auto* word = symmetric<int>(64);
  run.time([&] { ping_pong_p<<<1, 1, 0, run.stream>>>(word, rounds, 0); });
  const double p = run.time([&] { ping_pong_p<<<1, 1, 0, run.stream>>>(word, rounds, rounds); });
  require(read(word, 1)[0] == 2 * rounds, "p");
  run.row("p", sizeof(int), 1, p / rounds / 2);

  auto* chain = symmetric<int>(std::size_t{lines} * ints_of_line);
  auto* end = symmetric<int>(64);
  std::vector<int> next(std::size_t{lines} * ints_of_line);
  const int stride = 5003;  // prime to the number of lines
  for (int line = 0; line < lines; ++line) next[std::size_t(line) * ints_of_line] = (line + stride) % lines;
  check(cudaMemcpy(chain, next.data(), next.size() * sizeof(int), cudaMemcpyHostToDevice), "cudaMemcpy");
  const int steps = lines - 1;
  const double g = run.time([&] { chase_g<<<1, 1, 0, run.stream>>>(chain, steps, end); });
  require(read(end, 1)[0] == static_cast<int>(std::int64_t{stride} * steps % lines), "g");
  run.row("g", sizeof(int), 1, g / steps);

  auto* counter = symmetric<int>(64);
  const double with = run.time([&] { fetch_add<<<1, 1, 0, run.stream>>>(counter, rounds, end); });
  require(read(end, 1)[0] == rounds - 1, "atomic_fetch_add");
  run.row("atomic_fetch_add", sizeof(int), 1, with / rounds);
  const double without = run.time([&] { add<false><<<1, 1, 0, run.stream>>>(counter, rounds); });
  run.row("atomic_add", sizeof(int), 1, without / rounds);
  const double each = run.time([&] { add<true><<<1, 1, 0, run.stream>>>(counter, rounds); });
  run.row("atomic_add+quiet", sizeof(int), 1, each / rounds);
  nvshmem_barrier_all();
  require(read(counter, 1)[0] == 3 * rounds, "atomic_add");
  nvshmem_free(counter);
  nvshmem_free(end);
  nvshmem_free(chain);
  nvshmem_free(word);
}

void puts(Run& run) {
  constexpr std::size_t most = most_bytes / sizeof(float);
  float *to = symmetric<float>(most), *from = symmetric<float>(most);
  auto* signal = symmetric<std::uint64_t>(16);
  write(from, values_of(run.mine, most));
  std::uint64_t first = 0;
  for (const std::size_t bytes : {8ul, 1024ul, 8192ul, 65536ul, 262144ul, 1048576ul})
    for (const int threads : {32, 128, 1024}) {
      const std::size_t count = bytes / sizeof(float);
      const int rounds = bytes > 65536 ? 100 : 500;
      check(cudaMemset(to, 0, bytes), "cudaMemset");
      double took = 0;
      for (int turn = 0; turn < 2; ++turn) {
        took = run.time([&] {
          if (threads == 32)
            ping_pong_put<true><<<1, threads, 0, run.stream>>>(to, from, count, signal, rounds, first);
          else
            ping_pong_put<false><<<1, threads, 0, run.stream>>>(to, from, count, signal, rounds, first);
        });
        first += rounds;
      }
      nvshmem_barrier_all();
      require(read(to, count) == values_of(1 - run.mine, count), "put_signal");
      run.row("put_signal", bytes, threads, took / rounds / 2);
    }
  nvshmem_free(signal);
  nvshmem_free(from);
  nvshmem_free(to);
}

void meetings(Run& run) {
  constexpr int rounds = 1000;
  for (const int threads : {32, 1024}) {
    run.time([&] { meet<true><<<1, threads, 0, run.stream>>>(rounds); });
    run.row("barrier_all", 0, threads, run.time([&] { meet<true><<<1, threads, 0, run.stream>>>(rounds); }) / rounds);
    run.row("sync_all", 0, threads, run.time([&] { meet<false><<<1, threads, 0, run.stream>>>(rounds); }) / rounds);
  }
}

template <Operation operation>
void collectives(Run& run, const char* name) {
  constexpr std::size_t most = 65536;
  constexpr int pes = 2, threads = 512, rounds = 100;
  float *to = symmetric<float>(most * pes), *from = symmetric<float>(most * pes);
  write(from, values_of(run.mine, most * pes));
  for (std::size_t count = 256; count <= most; count *= 4) {
    check(cudaMemset(to, 0, most * pes * sizeof(float)), "cudaMemset");
    double took = 0;
    for (int turn = 0; turn < 2; ++turn)
      took = run.time([&] { collective<operation><<<1, threads, 0, run.stream>>>(to, from, count, rounds); });
    nvshmem_barrier_all();
    const bool is_of_all = operation == Operation::fcollect || operation == Operation::alltoall;
    const std::vector<float> found = read(to, is_of_all ? count * pes : count);
    bool right = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const int pe = static_cast<int>(i / count);
      float wanted = value_of(0, i) + value_of(1, i);
      if (operation == Operation::broadcast) wanted = value_of(0, i);
      if (operation == Operation::fcollect) wanted = value_of(pe, i % count);
      if (operation == Operation::alltoall)
        wanted = value_of(pe, static_cast<std::size_t>(run.mine) * count + i % count);
      right = right && found[i] == wanted;
    }
    // The root of a broadcast need not have its own copy.
    require(right || (operation == Operation::broadcast && run.mine == 0), name);
    run.row(name, count * sizeof(float), threads, took / rounds);
  }
  nvshmem_free(from);
  nvshmem_free(to);
}

// A square of side x side cells in two halves; compared with the whole on this GPU where that is quick.
void jacobi_steps(Run& run, int side, int steps) {
  const int rows = side / 2 + 2;
  const std::size_t cells = static_cast<std::size_t>(rows) * static_cast<std::size_t>(side);
  float* parts[2] = {symmetric<float>(cells), symmetric<float>(cells)};
  const int above = run.mine == 1 ? 0 : -1, below = run.mine == 0 ? 1 : -1;
  std::vector<float> first(cells);
  for (std::size_t i = 0; i < cells; ++i)
    first[i] = value_of(0, static_cast<std::size_t>(run.mine) * static_cast<std::size_t>(side / 2) * side + i);
  for (float* part : parts) write(part, first);
  nvshmem_barrier_all();
  const dim3 threads(32, 32), blocks((side - 2 + 31) / 32, (rows - 2 + 31) / 32);
  const auto step = [&](int turn) {
    jacobi<<<blocks, threads, 0, run.stream>>>(parts[turn % 2], parts[1 - turn % 2], rows, side, above, below);
    nvshmemx_barrier_all_on_stream(run.stream);
  };
  for (int turn = 0; turn < 10; ++turn) step(turn);
  const double took = run.time([&] {
    for (int turn = 0; turn < steps; ++turn) step(turn);
  });
  run.row("jacobi", static_cast<std::size_t>(side) * side * sizeof(float), most_threads, took / steps);
  // The whole, by the same kernel on one GPU, has two outer rows besides.
  const int whole_rows = side + 2;
  const std::size_t whole_cells = static_cast<std::size_t>(whole_rows) * static_cast<std::size_t>(side);
  std::vector<float> all(whole_cells);
  for (std::size_t i = 0; i < whole_cells; ++i) all[i] = value_of(0, i);
  float* whole[2];
  for (float*& each : whole) {
    check(cudaMalloc(&each, whole_cells * sizeof(float)), "cudaMalloc");
    write(each, all);
  }
  const dim3 of_whole((side - 2 + 31) / 32, (whole_rows - 2 + 31) / 32);
  for (int turn = 0; turn < 10 + steps; ++turn)
    jacobi<<<of_whole, threads, 0, run.stream>>>(whole[turn % 2], whole[1 - turn % 2], whole_rows, side, -1, -1);
  check(cudaStreamSynchronize(run.stream), "jacobi");
  const int last = (10 + steps) % 2;
  const std::size_t skipped = static_cast<std::size_t>(run.mine) * static_cast<std::size_t>(side / 2) * side;
  require(read(parts[last], cells) == read(whole[last] + skipped, cells), "jacobi");
  for (float* each : whole) check(cudaFree(each), "cudaFree");
  nvshmem_free(parts[1]);
  nvshmem_free(parts[0]);
}

}  // namespace

int main() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < 2) {
    std::printf("device_calls: needs 2 GPUs, this machine has %d\n", gpus);
    return 0;
  }
  start();
  Run run;
  run.mine = nvshmem_my_pe();
  if (nvshmem_n_pes() != 2) {
    if (run.mine == 0) std::fprintf(stderr, "device_calls: needs 2 PEs, these are %d\n", nvshmem_n_pes());
    nvshmem_finalize();
    return 2;
  }
  check(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaEventCreate(&run.begin), "cudaEventCreate");
  check(cudaEventCreate(&run.end), "cudaEventCreate");
  words(run);
  puts(run);
  meetings(run);
  collectives<Operation::broadcast>(run, "broadcast");
  collectives<Operation::fcollect>(run, "fcollect");
  collectives<Operation::alltoall>(run, "alltoall");
  collectives<Operation::sum>(run, "sum_reduce");
  jacobi_steps(run, 2048, 500);
  jacobi_steps(run, 16384, 30);
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
