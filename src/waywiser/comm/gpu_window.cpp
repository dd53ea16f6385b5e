#include "waywiser/comm/gpu_window.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

// Once in a program: a default is nothing that was measured.
void say_that_there_is_no_plan() {
  static std::once_flag said;
  std::call_once(said, [] {
    std::fputs("waywiser: no plan: GPU memory goes by copy engines; `waywiser tune` finds better ways\n", stderr);
  });
}

}  // namespace

GpuWindow::GpuWindow(Session& session, Region local, int rank, const std::vector<MemoryHandle>& theirs)
    : session_(session), platform_(session.platform()), local_(local), rank_(rank) {
  for (std::size_t other = 0; other < theirs.size(); ++other)
    opened_.push_back(static_cast<int>(other) == rank ? Memory()
                                                      : platform_.open_memory_for(theirs[other], local.place));
  if (!session.options().chooser && session.rank() == 0) say_that_there_is_no_plan();
}

Region GpuWindow::at(int rank) const {
  return rank == rank_ ? local_ : opened_.at(static_cast<std::size_t>(rank)).region();
}

Path GpuWindow::choose_without_plan(Place source, Place destination) const {
  const Path candidates[] = {
      {"copy_engine", source, destination, 2, {{"handle", "cuda_ipc"}}},
      {"host_staged", source, destination, 2, {{"variant", "pageable"}, {"handle", "cuda_ipc"}}},
  };
  std::string reasons;
  for (const Path& path : candidates) {
    const auto why = why_unavailable(path, {platform_});
    if (!why) return path;
    reasons += (reasons.empty() ? "" : "; ") + path.mechanism + ": " + *why;
  }
  throw Error(ErrorKind::unavailable, text(source) + " to " + text(destination) + ": " + reasons);
}

Path GpuWindow::choose(Place source, Place destination, Bytes bytes) const {
  const Chooser* chooser = session_.options().chooser.get();
  const PlanRow* row =
      chooser == nullptr ? nullptr : chooser->choose(source, destination, 2, Operation::latency, bytes);
  if (row == nullptr) return choose_without_plan(source, destination);
  const Path path = Chooser::path_for(*row, source, destination);
  // A two-sided path needs the other rank to take part, which one-sided access has not.
  return is_two_sided(path) ? choose_without_plan(source, destination) : path;
}

GpuWindow::Road& GpuWindow::road(Place source, Place destination, Bytes bytes) {
  const Path path = choose(source, destination, bytes);
  Road& road = roads_[pair_text(path) + " " + label(path)];
  if (!road.transport) {
    road.stream = platform_.open_stream(find_mechanism(path.mechanism)->works_on(path));
    road.transport = open_transport(path, {platform_});
  }
  return road;
}

void GpuWindow::move(Region destination, ConstRegion source) {
  if (source.bytes == 0) return;
  Road& way = road(source.place, destination.place, source.bytes);
  way.transport->put(destination, source, *way.stream);
  way.transport->finish(*way.stream, deadline());
  way.transport->rest();
}

void GpuWindow::put(int rank, Bytes offset, ConstRegion data) { move(at(rank).slice(offset, data.bytes), data); }

void GpuWindow::get(int rank, Bytes offset, Region data) { move(data, at(rank).slice(offset, data.bytes)); }

void GpuWindow::signal(int rank, Bytes offset, std::uint64_t value) {
  const Region flag = at(rank).slice(offset, sizeof value);
  Road& way = road(local_.place, flag.place, sizeof value);
  way.transport->signal(flag, value, *way.stream);
  way.transport->finish(*way.stream, deadline());
  way.transport->rest();
}

std::uint64_t GpuWindow::read_flag(Bytes offset) {
  if (!flag_stream_) {
    flag_ = platform_.allocate(platform_.nearest_host(local_.place.index), sizeof(std::uint64_t), Allocation::pinned);
    flag_stream_ = platform_.open_stream(local_.place);
  }
  flag_stream_->copy(flag_.region().slice(0, sizeof(std::uint64_t)), local_.slice(offset, sizeof(std::uint64_t)));
  flag_stream_->synchronize(deadline());
  std::uint64_t value = 0;
  std::memcpy(&value, flag_.region().data, sizeof value);
  return value;
}

}  // namespace waywiser
