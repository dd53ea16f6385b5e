#include "waywiser/heap/nvshmem/nvshmem_process.hpp"

namespace waywiser::nvshmem {
namespace {

using one_sided::Comparison, one_sided::SignalOp;

// call(stream) in the order of the caller's stream, or to its end.
template <typename Call>
void run_on(On on, Call call) {
  if (on.waits) {
    call(job().own_stream());
    job().wait_for_own_stream();
  } else {
    call(*borrow_stream(*process().group, job().heap().local().place, on.stream));
  }
}

SignalOp signal_op(int op) {
  if (op != 0 && op != 1) throw Error(ErrorKind::invalid_input, "there is no signal operation " + std::to_string(op));
  return op == 0 ? SignalOp::set : SignalOp::add;
}

Comparison comparison_of(int comparison) {
  if (comparison < 0 || comparison > static_cast<int>(Comparison::le))
    throw Error(ErrorKind::invalid_input, "there is no comparison " + std::to_string(comparison));
  return static_cast<Comparison>(comparison);
}

}  // namespace

void put(void* destination, const void* source, std::size_t bytes, int rank, On on) {
  ended_by_error("nvshmem_put", [&] {
    const Bytes at = job().offset(destination, bytes);
    run_on(on, [&](Stream& stream) { job().heap().put(stream, job().region_of(source, bytes), rank, at); });
  });
}

void get(void* destination, const void* source, std::size_t bytes, int rank, On on) {
  ended_by_error("nvshmem_get", [&] {
    const Bytes at = job().offset(source, bytes);
    run_on(on, [&](Stream& stream) { job().heap().get(stream, job().region_of(destination, bytes), rank, at); });
  });
}

void signal(std::uint64_t* word, std::uint64_t value, int op, int rank, On on) {
  ended_by_error("nvshmemx_signal_op", [&] {
    const Bytes at = job().offset(word, sizeof *word);
    const SignalOp how = signal_op(op);
    run_on(on, [&](Stream& stream) { job().heap().signal(stream, rank, at, value, how); });
  });
}

void wait_until(std::uint64_t* word, int comparison, std::uint64_t value, On on) {
  ended_by_error("nvshmem_wait_until", [&] {
    const Bytes at = job().offset(word, sizeof *word);
    const Comparison how = comparison_of(comparison);
    run_on(on, [&](Stream& stream) { job().heap().wait(stream, at, how, value); });
  });
}

int barrier(int team, On on) {
  return ended_by_error("nvshmem_barrier", [&] {
    if (!job().is_open() && on.waits && team == NvshmemJob::world) {
      process().group->barrier();
      return 0;
    }
    run_on(on, [&](Stream& stream) { job().heap().barrier(stream, job().team(team)); });
    return 0;
  });
}

int broadcast(int team, void* destination, const void* source, std::size_t bytes, int root, On on) {
  return ended_by_error("nvshmem_broadcast", [&] {
    const Bytes to = job().offset(destination, bytes), from = job().offset(source, bytes);
    run_on(on, [&](Stream& stream) { job().heap().broadcast(stream, job().team(team), to, from, bytes, root); });
    return 0;
  });
}

int all_gather(int team, void* destination, const void* source, std::size_t bytes, On on) {
  return ended_by_error("nvshmem_fcollect", [&] {
    const Bytes to = job().offset(destination, bytes), from = job().offset(source, bytes);
    run_on(on, [&](Stream& stream) { job().heap().all_gather(stream, job().team(team), to, from, bytes); });
    return 0;
  });
}

int all_to_all(int team, void* destination, const void* source, std::size_t bytes, On on) {
  return ended_by_error("nvshmem_alltoall", [&] {
    const Bytes to = job().offset(destination, bytes), from = job().offset(source, bytes);
    run_on(on, [&](Stream& stream) { job().heap().all_to_all(stream, job().team(team), to, from, bytes); });
    return 0;
  });
}

int reduce(int team, void* destination, const void* source, std::size_t count, DataType type, one_sided::TeamOp op,
           On on) {
  return ended_by_error("nvshmem_reduce", [&] {
    const Bytes to = job().offset(destination, 0), from = job().offset(source, 0);
    run_on(on, [&](Stream& stream) { job().heap().reduce(stream, job().team(team), to, from, count, type, op); });
    return 0;
  });
}

}  // namespace waywiser::nvshmem
