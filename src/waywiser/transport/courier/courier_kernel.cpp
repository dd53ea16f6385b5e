#include "waywiser/transport/courier/courier_kernel.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "waywiser/transport/courier/courier_body.hpp"
#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

// A host thread as a warp of one lane: the warp of a virtual GPU.
class HostWarp {
 public:
  static constexpr unsigned lanes = 1;

  HostWarp(unsigned index, unsigned block, CourierShape shape) : index_(index), block_(block), shape_(shape) {}
  unsigned lane() const { return 0; }
  unsigned index() const { return index_; }
  unsigned count() const { return shape_.pollers; }
  unsigned block() const { return block_; }
  unsigned blocks() const { return shape_.lanes; }
  std::uint32_t broadcast(std::uint32_t value) const { return value; }
  bool all(bool value) const { return value; }
  std::uint32_t add(std::uint32_t* word, std::uint32_t value) const { return std::atomic_ref(*word).fetch_add(value); }
  bool exchange(std::uint32_t* word, std::uint32_t expected, std::uint32_t value) const {
    return std::atomic_ref(*word).compare_exchange_strong(expected, value);
  }
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
  void fence_to_block() const { std::atomic_thread_fence(std::memory_order_acq_rel); }
  void fence_to_host() const { fence(); }
  void join() const {}
  void pause() const { std::this_thread::yield(); }
  std::uint32_t ticks() const { return static_cast<std::uint32_t>(nanoseconds()); }
  std::uint32_t ticks(unsigned ns) const { return ns; }
  std::uint64_t nanoseconds() const {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }

 private:
  unsigned index_, block_;
  CourierShape shape_;
};

void run_on_host(const CourierTerms& terms, CourierShape shape) {
  std::vector<CourierShared> shared(shape.lanes);
  for (unsigned lane = 0; lane < shape.lanes; ++lane)
    CourierBody<HostWarp>::prepare(HostWarp(0, lane, shape), shared[lane], terms);
  const auto run = [&](unsigned lane, unsigned index) {
    CourierBody<HostWarp>(HostWarp(index, lane, shape), shared[lane], terms).run();
  };
  std::vector<std::jthread> others;
  for (unsigned lane = 0; lane < shape.lanes; ++lane)
    for (unsigned index = 0; index < shape.pollers; ++index)
      if (lane + index != 0) others.emplace_back(run, lane, index);
  run(0, 0);
}

}  // namespace

Kernel courier_kernel(const CourierTerms& terms, CourierShape shape) {
  return {1, 1, [=](const ThreadContext&) { run_on_host(terms, shape); }, cuda_courier_launcher(terms, shape)};
}

}  // namespace waywiser
