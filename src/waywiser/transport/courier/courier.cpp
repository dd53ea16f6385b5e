#include "waywiser/transport/courier/courier.hpp"

#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/courier/courier_pair.hpp"
#include "waywiser/transport/courier/last_copy.hpp"
#include "waywiser/transport/defaults.hpp"

namespace waywiser {
namespace {

constexpr Bytes largest_worth = defaults::courier_message;

Place host_of(const Path& path) { return path.source.is_gpu() ? path.destination : path.source; }
Place gpu_of(const Path& path) { return path.source.is_gpu() ? path.source : path.destination; }

std::optional<std::string> why_no_courier(const Path& path, const TransportContext& context) {
  if (path.source.is_gpu() == path.destination.is_gpu()) return "it serves copies between host memory and a GPU only";
  if (context.platform.gpu_count() == 0) return "there is no GPU";
  const Allocation mailbox = path.processes == 2 ? Allocation::shared : Allocation::pinned;
  return context.platform.why_not_allocatable(host_of(path), mailbox);
}

std::shared_ptr<const Memory> pinned_mailboxes(Platform& platform, Place host) {
  return std::make_shared<const Memory>(platform.allocate(host, most_lanes * sizeof(Mailbox), Allocation::pinned));
}

class Courier : public Transport {
 public:
  Courier(const Path& path, const TransportContext& context, const CourierOptions& options)
      : options_(options),
        host_(host_of(path)),
        repeats_(context.repeats),
        kernel_(context.platform, gpu_of(path), pinned_mailboxes(context.platform, host_), 0, options),
        lanes_(kernel_.lanes()) {}

  void put(Region destination, ConstRegion source, Stream& stream) override {
    check_put(destination, source);
    check(stream);
    if (!is_awake()) return copy(destination, source);
    const bool to_gpu = destination.place.is_gpu();
    for (Bytes offset = 0; offset < destination.bytes;) {
      const Bytes part = lanes_.part_of(destination.bytes - offset);
      if (to_gpu)
        send(kernel_.stream().reach(destination) + offset, source.data + offset, part);
      else
        fetch(destination.data + offset, kernel_.stream().reach(source) + offset, part);
      offset += part;
    }
  }

  void rest() override {
    copies_.forget();
    kernel_.end();
  }

  void signal(Region flag, std::uint64_t value, Stream& stream) override {
    check(stream);
    if (!flag.place.is_gpu()) return stream.write_value(flag, value);
    if (flag.bytes != sizeof value || reinterpret_cast<std::uintptr_t>(flag.data) % sizeof value != 0)
      throw Error(ErrorKind::invalid_input, "a flag must be 8 bytes at an 8-byte aligned address");
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    if (!is_awake()) return copy(flag, {bytes, sizeof value, host_});
    send(kernel_.stream().reach(flag), bytes, sizeof value);
  }

 private:
  bool is_awake() const { return repeats_ || kernel_.is_running(); }

  // Without the kernel, which is started behind the second copy that soon follows another one: who puts now and then
  // does not wait for its start, and nothing of it stays on the GPU.
  void copy(Region destination, ConstRegion source) {
    if (destination.bytes == 0) return;
    const bool follows = copies_.follows(now_seconds(), options_.idle);
    kernel_.stream().copy(destination, source);
    kernel_.stream().synchronize(Deadline::in(options_.patience));
    copies_.ended(now_seconds());
    if (follows) kernel_.ensure_running();
  }

  void check(const Stream& stream) const {
    if (stream.place().is_gpu())
      throw Error(ErrorKind::invalid_input,
                  "courier: its stream must be on " + text(host_) + ", not on " + text(stream.place()));
  }

  template <typename Arrived>
  void wait(Arrived arrived) {
    constexpr unsigned patience_spins = 2048;
    if (arrived()) return;
    const Deadline deadline = Deadline::in(options_.patience);
    for (unsigned spins = 1; !arrived(); ++spins)
      if (spins % patience_spins == 0) look(deadline);
  }

  void look(Deadline deadline) {
    kernel_.attend();
    if (deadline.passed()) throw Error(ErrorKind::timeout, "courier: " + kernel_.late_text());
    std::this_thread::yield();
  }

  void send(std::byte* gpu, const std::byte* source, Bytes part) {
    kernel_.ensure_running();
    lanes_.post_put(gpu, source, part, ++number_);
    wait([&] { return lanes_.put_done(part, number_); });
  }

  void fetch(std::byte* destination, const std::byte* gpu, Bytes part) {
    kernel_.ensure_running();
    lanes_.post_get(gpu, part, ++number_);
    wait([&] { return lanes_.take(destination, part, number_); });
  }

  CourierOptions options_;
  Place host_;
  bool repeats_;
  LastCopy copies_;
  ResidentKernel kernel_;
  MailboxSet lanes_;
  std::uint32_t number_ = 0;
};

PathSteps steps(const Path& path, Bytes bytes) {
  const Place host = host_of(path), gpu = gpu_of(path);
  const StepEnd mailbox{host, "pinned orders"}, areas{host, "a pinned staging area"};
  const bool to_gpu = path.destination.is_gpu(), staged = bytes > most_reply;
  const Bytes piece = staged ? Bytes{most_lanes} * staged_bytes : 0;
  const StepEnd there = staged ? areas : mailbox;
  const std::string kernel = "the resident kernel on " + text(gpu);
  if (to_gpu)
    return {cpu_copies({path.source}, there, piece),
            {kernel, "sees the order, loads the bytes and stores them", there, StepEnd{path.destination}, piece},
            {"the CPU", "sees the kernel's mark", {}, {}}};
  return {{"the CPU", "writes an order to pinned memory", {}, {}},
          {kernel, "sees the order, loads the bytes and stores them", StepEnd{path.source}, there, piece},
          cpu_copies(there, {path.destination}, piece)};
}

}  // namespace

std::unique_ptr<Transport> open_courier(const Path& path, const TransportContext& context,
                                        const CourierOptions& options) {
  if (path.processes == 2) return open_courier_pair(path, context, options);
  return std::make_unique<Courier>(path, context, options);
}

namespace {

// Beside other work of the program the kernel stays no longer than the bytes of a burst need: a kernel that fills the
// GPU would need a second wave of blocks, and cudaFree waits for all kernels.
std::unique_ptr<Transport> open_for(const Path& path, const TransportContext& context) {
  CourierOptions options;
  if (!context.repeats && path.processes == 1) options.idle = 10e-6;
  return open_courier(path, context, options);
}

}  // namespace

Mechanism courier_mechanism() {
  return {"courier",
          "A resident kernel serves small copies through mapped pinned memory.",
          why_no_courier,
          host_of,
          open_for,
          steps,
          largest_worth,
          nullptr,
          true};
}

}  // namespace waywiser
