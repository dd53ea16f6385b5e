#include "waywiser/collective/on_stream/copy_pipeline.hpp"

namespace waywiser {

CopyPipeline::CopyPipeline(Platform& platform, Place gpu)
    : begin_(platform.create_event(gpu)), met_(platform.create_event(gpu)), end_(platform.create_event(gpu)) {
  for (Lane* lane : {copies_.data(), &copies_[1], &nods_, &takes_}) {
    lane->stream = platform.open_stream(gpu);
    for (auto& end : lane->ends) end = platform.create_event(gpu);
  }
}

void CopyPipeline::begin(Stream& stream) {
  stream.record(*begin_);
  nods_.stream->wait(*begin_);
  takes_.stream->wait(*begin_);
}

void CopyPipeline::run(const Work& work) {
  work.nod(*nods_.stream);
  nods_.stream->record(*met_);
  for (Lane& lane : copies_) lane.stream->wait(*met_);
  for (std::size_t step = 0; step < work.steps; ++step) this->step(work, step);
  takes_.stream->record(*end_);
}

void CopyPipeline::step(const Work& work, std::size_t step) {
  const Lane& copies = copies_[step % copies_.size()];
  // The nod of the step after the slot's last one: all have emptied it.
  if (step >= slots) copies.stream->wait(nods_.end_of(step - slots + 1));
  if (const int after = work.after(step); after >= 0)
    copies.stream->wait(takes_.end_of(static_cast<std::size_t>(after)));
  work.push(step, *copies.stream);
  copies.stream->record(copies.end_of(step));
  nods_.stream->wait(copies.end_of(step));
  if (step > 0) nods_.stream->wait(takes_.end_of(step - 1));
  work.nod(*nods_.stream);
  nods_.stream->record(nods_.end_of(step));
  takes_.stream->wait(nods_.end_of(step));
  work.take(step, *takes_.stream);
  takes_.stream->record(takes_.end_of(step));
}

void CopyPipeline::join(Stream& stream) { stream.wait(*end_); }

}  // namespace waywiser
