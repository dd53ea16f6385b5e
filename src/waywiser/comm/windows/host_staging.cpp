#include "waywiser/comm/windows/host_staging.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

Staging::~Staging() {
  for (Copy& copy : copies_) session_.gpus().connections().pool().give_back(std::move(copy.memory));
}

Stream& Staging::stream(Place place) {
  if (stream_ && stream_->place() != place)
    throw Error(ErrorKind::invalid_input, "input and output of a call must be on one GPU or on the host");
  stream_ = &session_.gpus().connections().stream(place);
  return *stream_;
}

Region Staging::stage(Region on_gpu, bool back) {
  for (Copy& known : copies_)
    if (known.on_gpu.data == on_gpu.data && known.on_gpu.bytes == on_gpu.bytes) {
      known.back = known.back || back;
      return known.on_host;
    }
  Copy copy;
  copy.on_gpu = on_gpu;
  copy.back = back;
  copy.memory = session_.gpus().connections().pool().take(on_gpu.place.index, on_gpu.bytes);
  copy.on_host = copy.memory.region().slice(0, on_gpu.bytes);
  Stream& line = stream(on_gpu.place);
  line.copy(copy.on_host, on_gpu);
  line.synchronize(Deadline::in(session_.timeout()));
  return copies_.emplace_back(std::move(copy)).on_host;
}

ConstElements Staging::input(ConstElements elements) {
  const ConstRegion& there = elements.region;
  if (!there.place.is_gpu() || there.bytes == 0) return elements;
  return {stage({const_cast<std::byte*>(there.data), there.bytes, there.place}, false), elements.type};
}

Elements Staging::output(Elements elements) {
  if (!elements.region.place.is_gpu() || elements.region.bytes == 0) return elements;
  return {stage(elements.region, true), elements.type};
}

void Staging::finish() {
  for (const Copy& copy : copies_)
    if (copy.back) stream(copy.on_gpu.place).copy(copy.on_gpu, copy.on_host);
  if (stream_) stream_->synchronize(Deadline::in(session_.timeout()));
}

std::shared_ptr<Activity> staged(std::shared_ptr<Activity> operation, std::unique_ptr<Staging> staging) {
  if (!staging) return operation;
  return std::make_shared<StagedActivity>(std::move(operation), std::move(staging));
}

}  // namespace waywiser
