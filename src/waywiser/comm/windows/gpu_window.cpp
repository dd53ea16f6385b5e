#include "waywiser/comm/windows/gpu_window.hpp"

#include <cstring>

#include "waywiser/base/error.hpp"

namespace waywiser {

namespace {

// The GPU for which memory of another rank is opened: without peer access only the owner's copy engine reaches it.
Place user_of(Platform& platform, const SharedRegion& memory, Place local) {
  const auto owner = platform.find_gpu(memory.identity());
  return owner && platform.why_no_peer_access(local.index, owner->index) ? *owner : local;
}

}  // namespace

GpuWindow::GpuWindow(Session& session, Region local, int rank, const std::vector<SharedRegion>& theirs)
    : session_(session),
      platform_(session.gpus().platform()),
      connections_(session.gpus().connections()),
      local_(local),
      regions_(theirs.size(), Region{nullptr, 0, local.place}) {
  for (std::size_t other = 0; other < theirs.size(); ++other) {
    if (static_cast<int>(other) == rank || theirs[other].bytes == 0) continue;
    opened_.push_back(session.gpus().peer_memory().open(theirs[other], user_of(platform_, theirs[other], local.place)));
    regions_[other] = opened_.back()->region().slice(theirs[other].offset, theirs[other].bytes);
  }
  regions_[static_cast<std::size_t>(rank)] = local;
}

void GpuWindow::move(Region destination, ConstRegion source) {
  if (source.bytes == 0) return;
  GpuConnections::Connection& way =
      connections_.connection(source.place, destination.place, source.bytes, local_.place);
  way.transport->put(destination, source, *way.stream);
  finish(way);
}

void GpuWindow::finish(GpuConnections::Connection& way) {
  finish(*way.stream, [&] { way.transport->finish(*way.stream, deadline()); });
  way.transport->rest();
}

// After an error, waits for the copies under way.
void GpuWindow::finish(Stream& stream, const std::function<void()>& wait) {
  try {
    wait();
  } catch (const Error& error) {
    session_.engine().held().add_own(static_cast<std::uint32_t>(session_.rank()), [&stream] { return ended(stream); });
    session_.fail(error.kind(), error.what());
  }
}

void GpuWindow::put(int rank, Bytes offset, ConstRegion data) { move(at(rank).slice(offset, data.bytes), data); }

void GpuWindow::get(int rank, Bytes offset, Region data) { move(data, at(rank).slice(offset, data.bytes)); }

void GpuWindow::signal(int rank, Bytes offset, std::uint64_t value) {
  const Region flag = at(rank).slice(offset, sizeof value);
  open_flag();
  if (!platform_.why_no_peer_access(local_.place.index, flag.place.index)) {
    flag_stream_->write_value(flag, value);
    return finish(*flag_stream_, [this] { flag_stream_->synchronize(deadline()); });
  }
  std::memcpy(flag_.region().data, &value, sizeof value);
  move(flag, flag_.region().slice(0, sizeof value));
}

void GpuWindow::open_flag() {
  if (flag_stream_) return;
  flag_ = platform_.allocate(platform_.nearest_host(local_.place.index), sizeof(std::uint64_t), Allocation::pinned);
  flag_stream_ = platform_.open_stream(local_.place);
}

std::uint64_t GpuWindow::read_flag(Bytes offset) {
  open_flag();
  flag_stream_->copy(flag_.region().slice(0, sizeof(std::uint64_t)), local_.slice(offset, sizeof(std::uint64_t)));
  flag_stream_->synchronize(deadline());
  std::uint64_t value = 0;
  std::memcpy(&value, flag_.region().data, sizeof value);
  return value;
}

}  // namespace waywiser
