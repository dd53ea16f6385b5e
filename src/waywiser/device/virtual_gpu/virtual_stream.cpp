#include "waywiser/device/virtual_gpu/virtual_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/host_stream.hpp"

namespace waywiser {
namespace {

void run_threads(const Kernel& kernel) {
  ThreadContext context{0, kernel.blocks, 0, kernel.threads};
  for (context.block = 0; context.block < kernel.blocks; ++context.block)
    for (context.thread = 0; context.thread < kernel.threads; ++context.thread) kernel.body(context);
}

}  // namespace

// Captured work, which can be enqueued again.
class VirtualGraph : public StreamGraph {
 public:
  explicit VirtualGraph(std::vector<WorkItem> items) : items_(std::move(items)) {}

  void launch(Stream& stream) override {
    auto* mine = dynamic_cast<VirtualStream*>(&stream);
    if (mine == nullptr) throw Error(ErrorKind::invalid_input, "a graph of virtual GPUs on another kind of stream");
    for (const WorkItem& item : items_) mine->push(item);
  }

 private:
  const std::vector<WorkItem> items_;
};

VirtualStream::VirtualStream(std::shared_ptr<Bus> bus, Place place) : bus_(std::move(bus)) {
  const VirtualMachine& machine = bus_->machine();
  queue_ =
      std::make_shared<WorkQueue>(place, bus_->trapped(place.index), machine.dead_gpu == place.index, machine.delay);
  if (bus_->scheduler().seeded()) {
    bus_->scheduler().add(queue_);
  } else {
    worker_ = std::make_unique<Worker>(queue_);
  }
}

VirtualStream::~VirtualStream() {
  if (!worker_) bus_->scheduler().remove(queue_);
}

Reached VirtualStream::reach(ConstRegion region, Bus::Access access) const {
  return bus_->reach(place().index, region, access);
}

const std::byte* VirtualStream::reach(ConstRegion region) const {
  Reached found = reach(region, Bus::Access::kernel);
  if (found.keeps && std::ranges::find(reached_, found.keeps) == reached_.end()) {
    if (reached_.size() == most_reached) reached_.erase(reached_.begin());
    reached_.push_back(std::move(found.keeps));
  }
  return found.data;
}

void VirtualStream::copy(Region destination, ConstRegion source) {
  check_put(destination, source);
  const Reached to = reach(destination, Bus::Access::copy_engine);
  const Reached from = reach(source, Bus::Access::copy_engine);
  push({"a copy from " + text(source.place) + " to " + text(destination.place),
        [to, from, bytes = source.bytes] {
          if (bytes != 0) std::memcpy(to.data, from.data, bytes);
        },
        {},
        {}});
}

void VirtualStream::launch(const Kernel& kernel) {
  if (!kernel.body) throw Error(ErrorKind::invalid_input, "a kernel without a body for virtual GPUs");
  push({"a kernel", [kernel, keeps = std::exchange(reached_, {})] { run_threads(kernel); }, {}, {}});
}

void VirtualStream::write_value(Region flag, std::uint64_t value) {
  check_flag(flag);
  const Reached to = reach(flag, Bus::Access::kernel);
  push({"a flag to write in " + text(flag.place), [to, value] { store_flag(to.data, value); }, {}, {}});
}

void VirtualStream::wait_value(ConstRegion flag, std::uint64_t at_least) {
  check_flag(flag);
  const Reached from = reach(flag, Bus::Access::kernel);
  push({"a wait for " + std::to_string(at_least) + " in a flag of " + text(flag.place),
        {},
        [from, at_least] { return load_flag(from.data) >= at_least; },
        {}});
}

void VirtualStream::call(std::function<void()> function) { push({"a host function", std::move(function), {}, {}}); }

void VirtualStream::push(WorkItem item) {
  if (captured_ == nullptr) return queue_->push(std::move(item));
  if (item.point) throw Error(ErrorKind::unavailable, "graphs of virtual GPUs have no events");
  captured_->push_back(std::move(item));
}

std::unique_ptr<StreamGraph> VirtualStream::capture(const std::function<void()>& enqueue) {
  std::vector<WorkItem> items;
  captured_ = &items;
  try {
    enqueue();
  } catch (...) {
    captured_ = nullptr;
    throw;
  }
  captured_ = nullptr;
  return std::make_unique<VirtualGraph>(std::move(items));
}

void VirtualStream::record(Event& event) {
  auto* mine = dynamic_cast<VirtualEvent*>(&event);
  if (mine == nullptr || mine->place() != place())
    throw Error(ErrorKind::invalid_input, "an event of another place recorded on a stream of " + text(place()));
  const auto point = std::make_shared<EventPoint>();
  point->place = place();
  push({"an event to record", {}, {}, point});  // throws where a kernel has trapped: then nothing is recorded
  mine->recorded(point);
}

void VirtualStream::wait(const Event& event) {
  const auto* other = dynamic_cast<const VirtualEvent*>(&event);
  if (other == nullptr || !other->point()) return;  // a host event has happened; so has one never recorded
  const std::shared_ptr<EventPoint> point = other->point();
  push({"a wait for " + text(point->place),
        [point] {
          if (point->state == EventPoint::failed)
            throw Error(ErrorKind::device, "the work on " + text(point->place) + " before an event failed");
        },
        [point] { return point->state.load(std::memory_order_acquire) != EventPoint::pending; },
        {}});
}

bool VirtualStream::done() {
  if (bus_->scheduler().seeded()) bus_->scheduler().progress();
  if (!queue_->empty()) return false;
  queue_->throw_error();
  return true;
}

void VirtualStream::synchronize(Deadline deadline) {
  const Seconds limit = deadline.left();
  const bool ended = bus_->scheduler().seeded() ? bus_->scheduler().run_until([&] { return queue_->empty(); }, deadline)
                                                : queue_->wait_until_empty(deadline);
  if (!ended)
    throw Error(ErrorKind::timeout,
                text(place()) + " did not finish its work within " + format_seconds(limit) + ": " + queue_->describe());
  queue_->throw_error();
}

}  // namespace waywiser
