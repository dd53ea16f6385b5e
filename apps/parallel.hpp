#pragma once

// Loops over cells and the arrays that they work on, in one source for hosts and GPUs: compiled by nvcc they are
// kernels on one GPU, else loops of this rank's threads. All headers below define the same:
//
//   join() -> Group                      the group of all ranks
//   class Processor(group, threads)      the GPU of this rank, or so many threads of the host, the caller's included
//     for_each(count, f)                 f(i) for 0 <= i < count, in any order
//     for_each(rows, columns, f)         f(row, column) for all of them; columns vary fastest; a class of f can have a
//                                        `rows_at_once`: so many rows a thread of a GPU takes together
//     sum(count, f) -> T                 of f(i), which runs once for each i and may store values, too; depends neither
//                                        on the threads nor on chance; T has + and is 0 as T{}
//     sum(rows, columns, f) -> T
//     max(count, f) -> T                 of f(i) and 0
//     wait()                             for all loops so far
//     start(halo), exchange(halo)        behind all loops so far; later loops come after exchange() and halo.finish()
//     place()                            where its arrays lie
//     overlaps                           whether ghosts travel while later loops run
//   read(pointer) -> T                   a value that nothing writes during the loop: loads of several cells overlap
//   class Recording(processor)           loops and exchanges by kernels (direct) that run repeatedly
//     run(f)                             f(), which calls for_each() and exchange() with the same arrays every time;
//                                        on a GPU a CUDA graph that is made by the second call
//     forget()                           the next call records anew
//   class Array<T>(processor, size)      zeros, also for whoever reads it next in another stream
//     data()                             for use in loops
//     elements()                         for calls of a group
//     field(components, planar)          for a HaloExchange
//     values() -> std::vector<T>, assign(values)
//
// On a GPU for_each returns before its loop has run. A loop's function is copied to the GPU: it captures variables by
// value, `[=] APPS_CALLABLE(std::int64_t i) { ... }`, and must not throw. nvcc takes no init-captures there, and none
// of these in a private function.
#if defined(__CUDACC__)
#define APPS_CALLABLE __host__ __device__
#else
#define APPS_CALLABLE
#endif

#if defined(__CUDACC__)
#include "apps/parallel_cuda.cuh"
#elif defined(APPS_VIRTUAL_GPUS)
#include "tests/apps/parallel_virtual.hpp"  // for tests: not by the public headers alone
#else
#include "apps/parallel_host.hpp"
#endif

#if !defined(__CUDACC__)
namespace apps {

template <typename T>
T read(const T* from) {
  return *from;
}

class Recording {
 public:
  explicit Recording(Processor& /*processor*/) {}
  template <typename Function>
  void run(Function f) {
    f();
  }
  void forget() noexcept {}
};

}  // namespace apps
#endif
