#include "waywiser/transport/courier/courier.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

constexpr Bytes largest_worth = 1 << 20;
constexpr Bytes largest_message = Bytes{most_slices} * staged_bytes;

Place host_of(const Path& path) { return path.source.is_gpu() ? path.destination : path.source; }
Place gpu_of(const Path& path) { return path.source.is_gpu() ? path.source : path.destination; }

std::optional<std::string> why_no_courier(const Path& path, const TransportContext& context) {
  if (path.source.is_gpu() == path.destination.is_gpu()) return "it serves copies between host memory and a GPU only";
  if (context.platform.gpu_count() == 0) return "there is no GPU";
  return context.platform.why_not_allocatable(host_of(path), Allocation::pinned);
}

class Courier : public Transport {
 public:
  Courier(const Path& path, Platform& platform, const CourierOptions& options)
      : options_(options), host_(host_of(path)), kernel_(platform, gpu_of(path), host_, options) {}

  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  ~Courier() override { kernel_.stop(number_ + 1); }

  void put(Region destination, ConstRegion source, Stream& stream) override {
    check_put(destination, source);
    check(stream);
    const bool to_gpu = destination.place.is_gpu();
    const Bytes most_in_packets = Bytes{options_.packet_slices} * slice_bytes;
    for (Bytes offset = 0; offset < destination.bytes;) {
      const Bytes left = destination.bytes - offset;
      const bool packets = left <= most_in_packets;
      const Bytes length = packets ? left : std::min(left, largest_message);
      const Region to = destination.slice(offset, length);
      const ConstRegion from = source.slice(offset, length);
      if (to_gpu)
        send(packets ? Task::put_packets : Task::put_staged, kernel_.stream().reach(to), from.data, length);
      else
        fetch(packets ? Task::get_packets : Task::get_staged, to.data, kernel_.stream().reach(from), length);
      offset += length;
    }
  }

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

  static unsigned bytes_of_slice(Task task) {
    return task == Task::put_staged || task == Task::get_staged ? staged_bytes : slice_bytes;
  }

  // Starts message number_ + 1. For each slice: `prepare(slice, offset, bytes)` gives the data that goes with the
  // order.
  template <typename Prepare>
  unsigned post(Task task, const std::byte* gpu, Bytes bytes, Prepare prepare) {
    kernel_.ensure_running(number_, Deadline::in(options_.patience));
    ++number_;
    const Bytes each = bytes_of_slice(task);
    const auto slices = static_cast<unsigned>((bytes + each - 1) / each);
    for (unsigned slice = 0; slice < slices; ++slice) {
      const Bytes offset = slice * each;
      const auto length = static_cast<unsigned>(std::min(each, bytes - offset));
      const Order order{task, length, slices, const_cast<std::byte*>(gpu) + offset};
      const std::byte* data = prepare(slice, offset, length);
      for (unsigned copy = 0; copy < copies_of(slices); ++copy)
        post_slice(kernel_.box().orders[copy][slice], order, data, number_);
    }
    return slices;
  }

  template <typename Arrived>
  void wait(Arrived arrived) {
    constexpr unsigned patience_spins = 2048;
    if (arrived()) return;
    const Deadline deadline = Deadline::in(options_.patience);
    for (unsigned spins = 1; !arrived(); ++spins)
      if (spins % patience_spins == 0) kernel_.attend(number_ - 1, deadline);
  }

  void wait_done(unsigned slice) {
    std::uint32_t& done = kernel_.box().done[slice];
    wait([&] { return std::atomic_ref(done).load(std::memory_order_acquire) == number_; });
  }

  void send(Task task, const std::byte* gpu, const std::byte* source, Bytes bytes) {
    const unsigned slices = post(task, gpu, bytes, [&](unsigned slice, Bytes offset, unsigned length) {
      if (task != Task::put_staged) return source + offset;
      std::memcpy(kernel_.box().staged[slice], source + offset, length);
      std::atomic_thread_fence(std::memory_order_release);
      return source + offset;
    });
    for (unsigned slice = 0; slice < slices; ++slice) wait_done(slice);
  }

  void fetch(Task task, std::byte* destination, const std::byte* gpu, Bytes bytes) {
    const unsigned slices = post(task, gpu, bytes, [](unsigned, Bytes, unsigned) { return nullptr; });
    const Bytes each = bytes_of_slice(task);
    for (unsigned slice = 0; slice < slices; ++slice) {
      std::byte* to = destination + slice * each;
      const auto length = static_cast<unsigned>(std::min(each, bytes - slice * each));
      if (task == Task::get_staged) {
        wait_done(slice);
        std::memcpy(to, kernel_.box().staged[slice], length);
      } else {
        unsigned next = 0;
        wait([&] { return take_reply(kernel_.box().replies[slice], to, length, number_, next); });
      }
    }
  }

  CourierOptions options_;
  Place host_;
  ResidentKernel kernel_;
  std::uint32_t number_ = 0;
};

}  // namespace

std::unique_ptr<Transport> open_courier(const Path& path, const TransportContext& context,
                                        const CourierOptions& options) {
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
