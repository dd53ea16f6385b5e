#pragma once

#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// The resident kernel, written for one warp. `Warp` gives: lanes (constant), lane(), index(), count(), broadcast(x),
// all(b), swap_if(word, expected, value), load/store that go past caches, publish(), publish_to_host(), pause(),
// nanoseconds(). Lanes of a warp stay together.
template <typename Warp>
class CourierBody {
 public:
  WAYWISER_DEVICE CourierBody(Warp& warp, CourierShared& shared, const CourierTerms& terms)
      : warp_(warp), shared_(shared), terms_(terms), box_(*terms.box) {}

  // Before any warp runs, for each slice: what an earlier launch has done must not be done again.
  WAYWISER_DEVICE static void prepare(const Warp& warp, CourierShared& shared, const CourierTerms& terms,
                                      unsigned slice) {
    const std::uint32_t done = warp.load(&terms.box->done[slice]);
    const bool newer = static_cast<std::int32_t>(done - terms.last_number) > 0;
    shared.handled[slice] = newer ? done : terms.last_number;
    if (slice != 0) return;
    shared.hot = 1;
    shared.parked = 0;
    shared.last_work = warp.nanoseconds();
  }

  WAYWISER_DEVICE void run() {
    const std::uint64_t start = warp_.nanoseconds();
    for (unsigned turn = 1;; ++turn) {
      if (warp_.broadcast(warp_.load(&shared_.parked)) != 0) return;
      const unsigned hot = warp_.broadcast(warp_.load(&shared_.hot));
      const unsigned copy = warp_.index() / hot % copies_of(hot);
      for (unsigned slice = warp_.index() % hot; slice < hot; slice += warp_.count()) serve(copy, slice);
      if (turn % 64 == 0 && warp_.broadcast(is_over(start))) return park();
      warp_.pause();
    }
  }

 private:
  static constexpr unsigned per_lane = packets_per_slice / Warp::lanes;

  WAYWISER_DEVICE std::uint32_t is_over(std::uint64_t start) const {
    const std::uint64_t now = warp_.nanoseconds();
    const std::uint64_t last_work = warp_.load(&shared_.last_work);  // another warp may just have set it later than now
    return (now > last_work && now - last_work > terms_.idle_ns) || now - start > terms_.residence_ns ? 1 : 0;
  }

  WAYWISER_DEVICE void park() {
    if (warp_.lane() != 0) return;
    warp_.store(&shared_.parked, 1u);
    warp_.store(&box_.parked, terms_.launch);
  }

  WAYWISER_DEVICE void serve(unsigned copy, unsigned slice) {
    Packet packets[per_lane];
    const std::uint32_t handled = warp_.broadcast(warp_.load(&shared_.handled[slice]));
    for (unsigned i = 0; i < per_lane; ++i)
      packets[i] = warp_.load(&box_.orders[copy][slice].packets[i * Warp::lanes + warp_.lane()]);
    Packet first;
    for (unsigned word = 0; word < 3; ++word) first.words[word] = warp_.broadcast(packets[0].words[word]);
    first.number = warp_.broadcast(packets[0].number);
    if (static_cast<std::int32_t>(first.number - handled) <= 0) return;
    const Order order = Order::read(first);
    bool arrived = true;
    for (unsigned i = 0; i < per_lane; ++i)
      if (i * Warp::lanes + warp_.lane() < order.packets()) arrived = arrived && packets[i].number == first.number;
    if (!warp_.all(arrived)) return;
    std::uint32_t mine = 0;
    if (warp_.lane() == 0) mine = warp_.swap_if(&shared_.handled[slice], handled, first.number) ? 1 : 0;
    if (warp_.broadcast(mine) == 0) return;
    if (warp_.lane() == 0) warp_.store(&shared_.hot, order.slices);
    carry_out(order, slice, first.number, packets);
    if (warp_.lane() == 0) warp_.store(&shared_.last_work, warp_.nanoseconds());
  }

  WAYWISER_DEVICE void carry_out(const Order& order, unsigned slice, std::uint32_t number, const Packet* packets) {
    switch (order.task) {
      case Task::put_packets: put_packets(order, packets); return confirm(slice, number);
      case Task::get_packets: return get_packets(order, slice, number);
      case Task::put_staged: copy(order.address, box_.staged[slice], order.bytes); return confirm(slice, number);
      case Task::get_staged:
        copy(box_.staged[slice], order.address, order.bytes);
        warp_.publish_to_host();
        return confirm(slice, number);
      case Task::stop: return park();
    }
  }

  // The data is visible to every later kernel and copy of this GPU before the host hears of it.
  WAYWISER_DEVICE void confirm(unsigned slice, std::uint32_t number) {
    warp_.publish();
    if (warp_.lane() == 0) warp_.store(&box_.done[slice], number);
  }

  WAYWISER_DEVICE void put_packets(const Order& order, const Packet* packets) {
    const bool flag = order.bytes == 8 && reinterpret_cast<std::uintptr_t>(order.address) % 8 == 0;
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned index = i * Warp::lanes + warp_.lane();
      if (index == 0 || index >= order.packets()) continue;
      const unsigned offset = (index - 1) * packet_bytes;
      const unsigned left = order.bytes - offset;
      if (flag)  // at once: somebody may wait for it
        warp_.store(reinterpret_cast<std::uint64_t*>(order.address),
                    packets[i].words[0] | (std::uint64_t{packets[i].words[1]} << 32));
      else
        put_words(order.address + offset, packets[i].words, left < packet_bytes ? left : packet_bytes);
    }
  }

  WAYWISER_DEVICE void put_words(std::byte* to, const std::uint32_t* words, unsigned bytes) {
    if (bytes == packet_bytes && reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
      for (unsigned i = 0; i < 3; ++i) warp_.store(reinterpret_cast<std::uint32_t*>(to) + i, words[i]);
      return;
    }
    for (unsigned i = 0; i < packet_bytes; ++i)
      if (i < bytes) warp_.store(to + i, static_cast<std::byte>(words[i / 4] >> (8 * (i % 4))));
  }

  WAYWISER_DEVICE void get_packets(const Order& order, unsigned slice, std::uint32_t number) {
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned index = i * Warp::lanes + warp_.lane();
      const unsigned offset = index * packet_bytes;
      if (offset >= order.bytes) continue;
      const unsigned left = order.bytes - offset;
      Packet packet{{0, 0, 0}, number};
      get_words(packet.words, order.address + offset, left < packet_bytes ? left : packet_bytes);
      warp_.store(&box_.replies[slice].packets[index], packet);
    }
    if (warp_.lane() == 0) warp_.store(&box_.done[slice], number);  // for the next launch, not for the host
  }

  WAYWISER_DEVICE void get_words(std::uint32_t* words, const std::byte* from, unsigned bytes) {
    if (bytes == packet_bytes && reinterpret_cast<std::uintptr_t>(from) % 4 == 0) {
      for (unsigned i = 0; i < 3; ++i) words[i] = warp_.load(reinterpret_cast<const std::uint32_t*>(from) + i);
      return;
    }
    for (unsigned i = 0; i < packet_bytes; ++i)
      if (i < bytes) words[i / 4] |= static_cast<std::uint32_t>(warp_.load(from + i)) << (8 * (i % 4));
  }

  WAYWISER_DEVICE void copy(std::byte* to, const std::byte* from, unsigned bytes) {
    const auto apart = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    if (apart % 16 == 0)
      copy_units<Packet>(to, from, bytes);
    else if (apart % 4 == 0)
      copy_units<std::uint32_t>(to, from, bytes);
    else
      copy_units<std::byte>(to, from, bytes);
  }

  template <typename Unit>
  WAYWISER_DEVICE void copy_units(std::byte* to, const std::byte* from, unsigned bytes) {
    constexpr unsigned batch = 4;
    constexpr unsigned unit_bytes = sizeof(Unit);
    const unsigned units = bytes / unit_bytes;
    const Unit* in = reinterpret_cast<const Unit*>(from);
    Unit* out = reinterpret_cast<Unit*>(to);
    for (unsigned first = warp_.lane(); first < units; first += batch * Warp::lanes) {
      Unit held[batch] = {};
      for (unsigned i = 0; i < batch; ++i)
        if (first + i * Warp::lanes < units) held[i] = warp_.load(in + first + i * Warp::lanes);
      for (unsigned i = 0; i < batch; ++i)
        if (first + i * Warp::lanes < units) warp_.store(out + first + i * Warp::lanes, held[i]);
    }
    for (unsigned i = units * unit_bytes + warp_.lane(); i < bytes; i += Warp::lanes)
      warp_.store(to + i, warp_.load(from + i));
  }

  Warp& warp_;
  CourierShared& shared_;
  CourierTerms terms_;
  Mailbox& box_;
};

}  // namespace waywiser
