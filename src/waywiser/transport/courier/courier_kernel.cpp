#include "waywiser/transport/courier/courier_kernel.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "waywiser/transport/courier/courier_body.hpp"
#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

// One lane that does the work of all: the warp of a virtual GPU.
class HostWarp {
 public:
  static constexpr unsigned lanes = 1;

  unsigned lane() const { return 0; }
  unsigned index() const { return 0; }
  unsigned count() const { return 1; }
  std::uint32_t broadcast(std::uint32_t value) const { return value; }
  bool all(bool value) const { return value; }
  std::uint32_t add(std::uint32_t* word, std::uint32_t value) const { return std::atomic_ref(*word).fetch_add(value); }
  template <typename Word>
  Word load(const Word* from) const {
    return std::atomic_ref(*const_cast<Word*>(from)).load(std::memory_order_acquire);
  }
  Packet load(const Packet* from) const { return load_packet(from); }
  template <typename Word>
  void store(Word* to, Word value) const {
    std::atomic_ref(*to).store(value, std::memory_order_release);
  }
  void store(Packet* to, const Packet& packet) const { store_packet(to, packet); }
  void fence() const { std::atomic_thread_fence(std::memory_order_release); }
  void fence_to_block() const { fence(); }
  void fence_to_host() const { fence(); }
  void join() const {}
  void delay(unsigned) const {}
  void pause() const { std::this_thread::yield(); }
  std::uint64_t nanoseconds() const {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
};

void run_on_host(const CourierTerms& terms) {
  HostWarp warp;
  CourierShared shared{};
  CourierBody<HostWarp>::prepare(shared, terms);
  CourierBody<HostWarp>(warp, shared, terms).run();
}

}  // namespace

Kernel courier_kernel(const CourierTerms& terms, unsigned warps) {
  Kernel kernel{1, 1, [terms](const ThreadContext&) { run_on_host(terms); }, cuda_courier_launcher(terms, warps)};
  return kernel;
}

}  // namespace waywiser
