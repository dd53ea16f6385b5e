#include "waywiser/offload/gpu_work.hpp"

#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_under_way = 512;

}  // namespace

GpuWork::GpuWork(Platform& platform, Place gpu, Seconds patience)
    : platform_(platform), gpu_(gpu), patience_(patience), stream_(platform.open_stream(gpu)) {}

GpuWork::~GpuWork() {
  try {
    settle();
  } catch (const Error&) {  // the GPU has failed
  }
}

GpuWork::Part& GpuWork::next(Seconds now, std::shared_ptr<const void> keeps) {
  if (under_way_ == most_under_way) settle();
  if (since_ == 0) since_ = now;
  keep(std::move(keeps));
  if (under_way_ == parts_.size())
    parts_.push_back({platform_.create_timed_event(gpu_), platform_.create_timed_event(gpu_)});
  return parts_[under_way_++];
}

void GpuWork::add(Seconds begin, Seconds end, Seconds seconds) {
  device_.total += seconds;
  compute_.add(begin, end);
}

void GpuWork::keep(std::shared_ptr<const void> memory) {
  if (is_under_way()) kept_.push_back(std::move(memory));
}

void GpuWork::settle() {
  if (!is_under_way()) return;
  const std::size_t parts = std::exchange(under_way_, 0);
  const Seconds since = std::exchange(since_, 0);
  stream_->synchronize(Deadline::in(patience_));
  kept_.clear();
  const Seconds now = now_seconds();
  compute_.add(since, now);
  for (std::size_t i = 0; i < parts; ++i) device_.total += parts_[i].end->since(*parts_[i].begin);
}

}  // namespace waywiser
