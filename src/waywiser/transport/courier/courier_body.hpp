#pragma once

#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// The resident kernel, written for one warp. `Warp` gives: lanes (constant), lane(), index(), count(), broadcast(x),
// all(b), add(word, value), exchange(word, expected, value), load/store that go past caches, fence_to_block(), fence(),
// fence_to_host(), join(), pause(), ticks(), ticks(ns), nanoseconds(). Lanes of a warp stay together.
//
// A look at host memory lasts about 1 us, so several warps look in turn; the first that sees a message carries it out.
// The others wait in shared memory, where that costs nothing, for their shares of longer messages.
template <typename Warp>
class CourierBody {
 public:
  WAYWISER_DEVICE CourierBody(Warp& warp, CourierShared& shared, const CourierTerms& terms)
      : warp_(warp), shared_(shared), terms_(terms), box_(*terms.box) {}

  // One lane, before any warp runs. What an earlier launch has done must not be done again.
  WAYWISER_DEVICE static void prepare(const Warp& warp, CourierShared& shared, const CourierTerms& terms) {
    shared = {};
    shared.number = shared.claimed = shared.handled = warp.load(&terms.box->done);
  }

  WAYWISER_DEVICE void run() {
    if (warp_.index() < pollers())
      poll();
    else
      help();
  }

 private:
  static constexpr unsigned per_lane = packets_per_row / Warp::lanes;
  static constexpr unsigned batch = 8;  // accesses of a lane that are on their way at once
  using Row = Packet[per_lane];

  WAYWISER_DEVICE unsigned pollers() const { return terms_.pollers < warp_.count() ? terms_.pollers : warp_.count(); }
  WAYWISER_DEVICE unsigned helpers() const { return warp_.count() - pollers(); }

  WAYWISER_DEVICE static bool newer(std::uint32_t number, std::uint32_t than) {
    return static_cast<std::int32_t>(number - than) > 0;
  }

  WAYWISER_DEVICE std::uint32_t read(const std::uint32_t& word) const { return warp_.broadcast(warp_.load(&word)); }

  WAYWISER_DEVICE void poll() {
    const Packet* from = box_.orders[warp_.index()].packets;
    const std::uint64_t start = warp_.nanoseconds();
    for (unsigned turn = 1; read(shared_.over) == 0; ++turn) {
      wait_for_turn();
      Row row;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < per_lane; ++i) row[i] = warp_.load(&from[i * Warp::lanes + warp_.lane()]);
      const std::uint32_t number = warp_.broadcast(row[0].number), handled = read(shared_.handled);
      if (newer(number, handled)) try_to_carry_out(row, number, handled);
      if (ended(row) || (turn % 64 == 0 && is_over(start, handled))) warp_.store(&shared_.over, 1u);
    }
    leave();
  }

  WAYWISER_DEVICE void wait_for_turn() {
    if (warp_.lane() == 0) {
      const std::uint32_t gap = warp_.ticks(terms_.look_gap_ns);
      for (;; warp_.pause()) {
        const std::uint32_t last = warp_.load(&shared_.last_look), now = warp_.ticks();
        if (now - last >= gap && warp_.exchange(&shared_.last_look, last, now)) break;
      }
    }
    warp_.join();
  }

  WAYWISER_DEVICE bool ended(const Row& row) const {
    constexpr unsigned last = per_lane - 1;
    return !warp_.all(warp_.lane() != Warp::lanes - 1 || row[last].words[0] != terms_.launch);
  }

  WAYWISER_DEVICE bool is_over(std::uint64_t start, std::uint32_t handled) {
    const std::uint64_t now = warp_.nanoseconds();
    if (handled != seen_ || last_work_ == 0) last_work_ = now;
    seen_ = handled;
    return warp_.broadcast(now - last_work_ > terms_.idle_ns || now - start > terms_.residence_ns ? 1 : 0) != 0;
  }

  WAYWISER_DEVICE void leave() {
    if (warp_.lane() != 0 || warp_.add(&shared_.left, 1) + 1 != pollers()) return;
    warp_.store(&shared_.parked, 1u);
    warp_.store(&box_.parked, terms_.launch);
  }

  WAYWISER_DEVICE void try_to_carry_out(const Row& row, std::uint32_t number, std::uint32_t handled) {
    Packet first = row[0];
    for (std::uint32_t& word : first.words) word = warp_.broadcast(word);
    const Order order = Order::read(first);
    bool arrived = true;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < per_lane; ++i)
      if (i * Warp::lanes + warp_.lane() < order.packets()) arrived = arrived && row[i].number == number;
    if (!warp_.all(arrived) || !claim(number, handled)) return;
    if (order.task == Task::put_packets)
      put_packets(order, number, row);
    else if (helpers() == 0 || is_quick(order))
      carry_out_alone(order, number);
    else
      call_helpers(order, number);
    warp_.fence_to_block();
    warp_.join();
    warp_.store(&shared_.handled, number);
  }

  // Fails while another poller carries out the message before it, and when another one was first.
  WAYWISER_DEVICE bool claim(std::uint32_t number, std::uint32_t handled) {
    std::uint32_t won = 0;
    if (warp_.lane() == 0) won = warp_.exchange(&shared_.claimed, handled, number) ? 1 : 0;
    return warp_.broadcast(won) != 0;
  }

  WAYWISER_DEVICE static unsigned unit_of(const std::byte* address) {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return value % 16 == 0 ? 16 : value % 4 == 0 ? 4 : 1;
  }

  // One warp needs no longer than many.
  WAYWISER_DEVICE static bool is_quick(const Order& order) {
    if (order.task == Task::get_packets) return order.bytes <= packets_per_row * packet_bytes;
    return order.task == Task::put_staged && order.bytes <= batch * Warp::lanes * unit_of(order.address);
  }

  // The data is visible to every later kernel and copy of this GPU before the host hears of it.
  WAYWISER_DEVICE void put_packets(const Order& order, std::uint32_t number, const Row& row) {
    const bool flag = order.bytes == 8 && reinterpret_cast<std::uintptr_t>(order.address) % 8 == 0;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned index = i * Warp::lanes + warp_.lane();
      if (index == 0 || index >= order.packets()) continue;
      const unsigned offset = (index - 1) * packet_bytes;
      const unsigned left = order.bytes - offset;
      if (flag)  // at once: somebody may wait for it
        warp_.store(reinterpret_cast<std::uint64_t*>(order.address),
                    row[i].words[0] | (std::uint64_t{row[i].words[1]} << 32));
      else
        put_words(order.address + offset, row[i].words, left < packet_bytes ? left : packet_bytes);
    }
    warp_.fence();
    tell_done(number);
  }

  WAYWISER_DEVICE void tell_done(std::uint32_t number) {
    warp_.join();
    if (warp_.lane() == 0) warp_.store(&box_.done, number);
  }

  WAYWISER_DEVICE void carry_out_alone(const Order& order, std::uint32_t number) {
    if (order.task == Task::get_packets) {
      get_packets(order, number, 0, 1);
    } else {
      copy_staged(order, 0, order.bytes);
      publish(order);
    }
    tell_done(number);
  }

  // And waits for them: the next message needs them again.
  WAYWISER_DEVICE void call_helpers(const Order& order, std::uint32_t number) {
    if (warp_.lane() == 0) {
      shared_.order = order;
      warp_.store(&shared_.finished, 0u);
      warp_.fence_to_block();
      warp_.store(&shared_.number, number);
      while (warp_.load(&shared_.finished) != helpers()) warp_.pause();
    }
    warp_.join();
  }

  WAYWISER_DEVICE void help() {
    for (std::uint32_t seen = read(shared_.handled);;) {
      const std::uint32_t parked = read(shared_.parked);  // before the last number is read
      const std::uint32_t number = read(shared_.number);
      if (number != seen) {
        warp_.fence_to_block();
        carry_out_share(shared_.order, number);
        seen = number;
      } else if (parked != 0) {
        return;
      }
      warp_.pause();
    }
  }

  // The last helper says that the message is done.
  WAYWISER_DEVICE void carry_out_share(const Order order, std::uint32_t number) {
    const unsigned share = warp_.index() - pollers();
    if (order.task == Task::get_packets)
      get_packets(order, number, share, helpers());
    else
      copy_share(order, share);
    warp_.join();
    if (warp_.lane() != 0) return;
    if (warp_.add(&shared_.finished, 1) + 1 == helpers()) warp_.store(&box_.done, number);
  }

  WAYWISER_DEVICE void copy_share(const Order& order, unsigned share) {
    constexpr unsigned unit = 512;  // one access of a warp
    const unsigned units = (order.bytes + unit - 1) / unit;
    const unsigned share_bytes = (units + helpers() - 1) / helpers() * unit;
    const unsigned offset = share * share_bytes;
    if (offset >= order.bytes) return;
    copy_staged(order, offset, order.bytes - offset < share_bytes ? order.bytes - offset : share_bytes);
    publish(order);
  }

  WAYWISER_DEVICE void copy_staged(const Order& order, unsigned offset, unsigned bytes) {
    std::byte* near = box_.staged + offset;
    std::byte* far = order.address + offset;
    if (order.task == Task::put_staged)
      copy(far, near, bytes, unit_of(far));
    else
      copy(near, far, bytes, unit_of(far));
  }

  WAYWISER_DEVICE void publish(const Order& order) {
    if (order.task == Task::put_staged)
      warp_.fence();
    else
      warp_.fence_to_host();
  }

  // Packets tell the host themselves that they are there.
  WAYWISER_DEVICE void get_packets(const Order& order, std::uint32_t number, unsigned first, unsigned step) {
    const unsigned packets = (order.bytes + packet_bytes - 1) / packet_bytes;
    for (unsigned index = first * Warp::lanes + warp_.lane(); index < packets; index += step * Warp::lanes) {
      const unsigned offset = index * packet_bytes;
      const unsigned left = order.bytes - offset;
      Packet packet{{0, 0, 0}, number};
      get_words(packet.words, order.address + offset, left < packet_bytes ? left : packet_bytes);
      warp_.store(&box_.replies[index], packet);
    }
  }

  WAYWISER_DEVICE void put_words(std::byte* to, const std::uint32_t* words, unsigned bytes) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % 4 == 0;
    for (unsigned word = 0; word < 3; ++word) {
      const unsigned offset = 4 * word;
      if (aligned && offset + 4 <= bytes)
        warp_.store(reinterpret_cast<std::uint32_t*>(to + offset), words[word]);
      else
        for (unsigned i = 0; i < 4; ++i)
          if (offset + i < bytes) warp_.store(to + offset + i, static_cast<std::byte>(words[word] >> (8 * i)));
    }
  }

  WAYWISER_DEVICE void get_words(std::uint32_t* words, const std::byte* from, unsigned bytes) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(from) % 4 == 0;
    for (unsigned word = 0; word < 3; ++word) {
      const unsigned offset = 4 * word;
      if (aligned && offset + 4 <= bytes)
        words[word] = warp_.load(reinterpret_cast<const std::uint32_t*>(from + offset));
      else
        for (unsigned i = 0; i < 4; ++i)
          if (offset + i < bytes) words[word] |= static_cast<std::uint32_t>(warp_.load(from + offset + i)) << (8 * i);
    }
  }

  WAYWISER_DEVICE void copy(std::byte* to, const std::byte* from, unsigned bytes, unsigned unit) {
    if (unit == 16)
      copy_units<Packet>(to, from, bytes);
    else if (unit == 4)
      copy_units<std::uint32_t>(to, from, bytes);
    else
      copy_units<std::byte>(to, from, bytes);
  }

  // The odd bytes at the end are loaded first, so that they are on their way together with the rest.
  template <typename Unit>
  WAYWISER_DEVICE void copy_units(std::byte* to, const std::byte* from, unsigned bytes) {
    const unsigned units = bytes / sizeof(Unit), whole = units * sizeof(Unit);
    const bool odd = whole + warp_.lane() < bytes;
    const std::byte end = odd ? warp_.load(from + whole + warp_.lane()) : std::byte{};
    const Unit* in = reinterpret_cast<const Unit*>(from);
    Unit* out = reinterpret_cast<Unit*>(to);
    for (unsigned first = warp_.lane(); first < units; first += batch * Warp::lanes) {
      Unit held[batch] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (first + i * Warp::lanes < units) held[i] = warp_.load(in + first + i * Warp::lanes);
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (first + i * Warp::lanes < units) warp_.store(out + first + i * Warp::lanes, held[i]);
    }
    if (odd) warp_.store(to + whole + warp_.lane(), end);
    for (unsigned i = whole + warp_.lane() + Warp::lanes; i < bytes; i += Warp::lanes)
      warp_.store(to + i, warp_.load(from + i));
  }

  Warp& warp_;
  CourierShared& shared_;
  CourierTerms terms_;
  Mailbox& box_;
  std::uint32_t seen_ = 0;
  std::uint64_t last_work_ = 0;
};

}  // namespace waywiser
