#include <algorithm>
#include <cstdlib>

#include "waywiser/base/environment.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/heap/nvshmem/nvshmem_process.hpp"

namespace waywiser::nvshmem {
namespace {

constexpr Bytes usual_size = Bytes{1} << 30;

Bytes symmetric_size() {
  const auto given = environment("NVSHMEM_SYMMETRIC_SIZE");
  return NvshmemJob::in_granules(given ? parse_bytes(*given) : usual_size);
}

// A program that ends after a kernel has stopped says why it has.
void say_fault() {
  NvshmemProcess& all = process();
  if (!all.job || !all.job->is_open()) return;
  try {
    all.job->heap().check();
  } catch (const Error& error) {
    std::fprintf(stderr, "nvshmem: %s\n", error.what());
  }
}

void write(Publish module) {
  if (const char* why = module(job().terms())) throw Error(ErrorKind::device, why);
}

}  // namespace

NvshmemProcess& process() {
  static NvshmemProcess& all = *new NvshmemProcess;  // kernels and streams may need it until the process ends
  return all;
}

NvshmemJob& job() {
  if (!process().job) throw Error(ErrorKind::invalid_input, "nvshmem_init has not been called");
  return *process().job;
}

void publish() {
  for (const Publish module : process().modules) write(module);
}

bool add_module(Publish module) {
  return ended_by_error("nvshmem: a module with kernels", [&] {
    process().modules.push_back(module);
    if (process().job && process().job->is_open()) write(module);
    return true;
  });
}

void init() {
  ended_by_error("nvshmem_init", [] {
    if (process().inits++ != 0) return;
    process().group.emplace(Group::join());
    process().job.emplace(*process().group, symmetric_size());
    static const int registered = std::atexit(say_fault);
    static_cast<void>(registered);
  });
}

bool is_init() { return process().job.has_value(); }

void finalize() {
  ended_by_error("nvshmem_finalize", [] {
    const NvshmemJob& ending = job();
    if (--process().inits != 0) return;
    if (ending.is_open()) ending.heap().check();
    process().group->barrier();
    process().job.reset();
    process().group->close();
    process().group.reset();
  });
}

void end_process(const std::string& why, int code) noexcept {
  std::fflush(nullptr);
  if (process().group) {
    process().group->abort(why);
    session_of(*process().group).end(std::max(code, 1));  // 0 would wait for the other PEs
  }
  std::_Exit(code);
}

void global_exit(int code) { end_process("nvshmem_global_exit(" + std::to_string(code) + ")", code); }

void fail(const char* call, const char* why) {
  ended_by_error(call, [&] { throw Error(ErrorKind::device, why); });
  std::abort();
}

int rank() {
  return ended_by_error("nvshmem_my_pe", [] { return job().rank(); });
}
int size() {
  return ended_by_error("nvshmem_n_pes", [] { return job().size(); });
}
int rank_in(int team) {
  return ended_by_error("nvshmem_team_my_pe", [&] { return job().rank_in(team); });
}
int size_of(int team) {
  return ended_by_error("nvshmem_team_n_pes", [&] { return job().size_of(team); });
}
int translate(int from_team, int rank, int to_team) {
  return ended_by_error("nvshmem_team_translate_pe", [&] { return job().translate(from_team, rank, to_team); });
}

void open(int device) {
  ended_by_error("nvshmem", [&] {
    const bool first = !job().is_open();
    job().open(gpu(device));
    if (first) publish();
  });
}

void* allocate(int device, std::size_t bytes, std::size_t alignment, bool zeros) {
  open(device);
  return ended_by_error("nvshmem_malloc", [&] { return job().allocate(bytes, alignment, zeros); });
}

void release(void* symmetric) {
  ended_by_error("nvshmem_free", [&] { job().release(static_cast<const std::byte*>(symmetric)); });
}

int split_strided(int device, int parent, int start, int stride, int size) {
  open(device);
  return ended_by_error("nvshmem_team_split_strided", [&] {
    const int team = job().split_strided(parent, start, stride, size);
    publish();
    return team;
  });
}

void split_2d(int device, int parent, int columns, int& row, int& column) {
  open(device);
  ended_by_error("nvshmem_team_split_2d", [&] {
    job().split_2d(parent, columns, row, column);
    publish();
  });
}

void destroy(int team) {
  ended_by_error("nvshmem_team_destroy", [&] {
    job().destroy(team);
    publish();
  });
}

void* pointer(const void* symmetric, int rank) {
  return ended_by_error("nvshmem_ptr", [&] { return job().pointer(static_cast<const std::byte*>(symmetric), rank); });
}

}  // namespace waywiser::nvshmem
