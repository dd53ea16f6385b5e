#include "waywiser/transport/courier/courier.hpp"

#include <atomic>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/courier/courier_pair.hpp"
#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

constexpr Bytes largest_worth = 1 << 20;

Place host_of(const Path& path) { return path.source.is_gpu() ? path.destination : path.source; }
Place gpu_of(const Path& path) { return path.source.is_gpu() ? path.source : path.destination; }

std::optional<std::string> why_no_courier(const Path& path, const TransportContext& context) {
  if (path.source.is_gpu() == path.destination.is_gpu()) return "it serves copies between host memory and a GPU only";
  if (context.platform.gpu_count() == 0) return "there is no GPU";
  const Allocation mailbox = path.processes == 2 ? Allocation::shared : Allocation::pinned;
  return context.platform.why_not_allocatable(host_of(path), mailbox);
}

std::shared_ptr<const Memory> pinned_mailbox(Platform& platform, Place host) {
  return std::make_shared<const Memory>(platform.allocate(host, sizeof(Mailbox), Allocation::pinned));
}

class Courier : public Transport {
 public:
  Courier(const Path& path, Platform& platform, const CourierOptions& options)
      : options_(options),
        host_(host_of(path)),
        kernel_(platform, gpu_of(path), pinned_mailbox(platform, host_), 0, options) {}

  void put(Region destination, ConstRegion source, Stream& stream) override {
    check_put(destination, source);
    check(stream);
    const bool to_gpu = destination.place.is_gpu();
    for (Bytes offset = 0; offset < destination.bytes;) {
      const Bytes part = part_of(destination.bytes - offset);
      const Region to = destination.slice(offset, part);
      const ConstRegion from = source.slice(offset, part);
      if (to_gpu)
        send(task_of_put(part), kernel_.stream().reach(to), from.data, part);
      else
        fetch(task_of_get(part), to.data, kernel_.stream().reach(from), part);
      offset += part;
    }
  }

  void rest() override { kernel_.end(Deadline::in(options_.patience)); }

  void signal(Region flag, std::uint64_t value, Stream& stream) override {
    check(stream);
    if (!flag.place.is_gpu()) return stream.write_value(flag, value);
    if (flag.bytes != sizeof value || reinterpret_cast<std::uintptr_t>(flag.data) % sizeof value != 0)
      throw Error(ErrorKind::invalid_input, "a flag must be 8 bytes at an address that 8 divides");
    send(Task::put_packets, kernel_.stream().reach(flag), reinterpret_cast<const std::byte*>(&value), sizeof value);
  }

 private:
  void check(const Stream& stream) const {
    if (stream.place().is_gpu())
      throw Error(ErrorKind::invalid_input,
                  "courier: its stream must be on " + text(host_) + ", not on " + text(stream.place()));
  }

  // Starts message number_ + 1.
  void post(Task task, const std::byte* gpu, Bytes bytes, const std::byte* source) {
    kernel_.ensure_running(Deadline::in(options_.patience));
    ++number_;
    const Order order{task, static_cast<unsigned>(bytes), const_cast<std::byte*>(gpu)};
    post_message(kernel_.box(), options_.pollers, order, source, number_);
  }

  template <typename Arrived>
  void wait(Arrived arrived) {
    constexpr unsigned patience_spins = 2048;
    if (arrived()) return;
    const Deadline deadline = Deadline::in(options_.patience);
    for (unsigned spins = 1; !arrived(); ++spins)
      if (spins % patience_spins == 0) kernel_.attend(deadline);
  }

  void wait_done() {
    wait([&] { return std::atomic_ref(kernel_.box().done).load(std::memory_order_acquire) == number_; });
  }

  void send(Task task, const std::byte* gpu, const std::byte* source, Bytes bytes) {
    post(task, gpu, bytes, source);
    wait_done();
  }

  void fetch(Task task, std::byte* destination, const std::byte* gpu, Bytes bytes) {
    post(task, gpu, bytes, nullptr);
    if (task == Task::get_staged) {
      wait_done();
      std::memcpy(destination, kernel_.box().staged, bytes);
      return;
    }
    unsigned next = 0;
    const auto length = static_cast<unsigned>(bytes);
    wait([&] { return take_reply(kernel_.box().replies, destination, length, number_, next); });
  }

  CourierOptions options_;
  Place host_;
  ResidentKernel kernel_;
  std::uint32_t number_ = 0;
};

}  // namespace

std::unique_ptr<Transport> open_courier(const Path& path, const TransportContext& context,
                                        const CourierOptions& options) {
  if (path.processes == 2) return open_courier_pair(path, context, options);
  return std::make_unique<Courier>(path, context.platform, options);
}

Mechanism courier_mechanism() {
  return {"courier",
          "a resident kernel that serves small copies through mapped pinned memory",
          why_no_courier,
          host_of,
          [](const Path& path, const TransportContext& context) { return open_courier(path, context); },
          largest_worth};
}

}  // namespace waywiser
