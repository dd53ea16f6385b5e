#pragma once

#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// The resident kernel, written for one warp. `Warp` gives: lanes (constant), lane(), index(), count(), broadcast(x),
// all(b), add(word, value), load/store that go past caches, fence_to_block(), fence(), fence_to_host(), join(),
// pause(), delay(ns), nanoseconds(). Lanes of a warp stay together. One warp polls, as reads of host memory from one
// processor of the GPU wait for each other; puts in packets and short replies are its work alone. The other warps wait
// in shared memory, where that costs nothing, for their shares of longer messages.
template <typename Warp>
class CourierBody {
 public:
  WAYWISER_DEVICE CourierBody(Warp& warp, CourierShared& shared, const CourierTerms& terms)
      : warp_(warp), shared_(shared), terms_(terms), box_(*terms.box) {}

  // Before any warp runs.
  WAYWISER_DEVICE static void prepare(CourierShared& shared, const CourierTerms& terms) {
    shared.number = terms.last_number;
    shared.finished = 0;
    shared.parked = 0;
  }

  WAYWISER_DEVICE void run() {
    if (warp_.index() == 0)
      poll();
    else
      help();
  }

 private:
  static constexpr unsigned per_lane = most_rows * packets_per_row / Warp::lanes;
  using Packets = Packet[per_lane];

  WAYWISER_DEVICE void poll() {
    // What an earlier launch has done must not be done again.
    const std::uint32_t done = warp_.broadcast(warp_.load(&box_.done));
    std::uint32_t handled = newer(done, terms_.last_number) ? done : terms_.last_number;
    const std::uint64_t start = warp_.nanoseconds();
    std::uint64_t last_work = start;
    for (unsigned turn = 1;; ++turn) {
      Packets packets;
      load(packets);
      const std::uint32_t number = warp_.broadcast(packets[0].number);
      if (newer(number, handled) && carry_out(packets, number)) {
        if (stopped_) return park();
        handled = number;
        last_work = warp_.nanoseconds();
        warp_.delay(rest_);
      }
      if (turn % 64 == 0 && warp_.broadcast(is_over(start, last_work)) != 0) return park();
      warp_.pause();
    }
  }

  WAYWISER_DEVICE void help() {
    for (std::uint32_t seen = terms_.last_number;;) {
      const std::uint32_t parked = warp_.broadcast(warp_.load(&shared_.parked));  // before the last number is read
      const std::uint32_t number = warp_.broadcast(warp_.load(&shared_.number));
      if (number != seen) {
        carry_out_share(shared_.order, number);
        seen = number;
      } else if (parked != 0) {
        return;
      }
    }
  }

  WAYWISER_DEVICE static bool newer(std::uint32_t number, std::uint32_t than) {
    return static_cast<std::int32_t>(number - than) > 0;
  }

  WAYWISER_DEVICE std::uint32_t is_over(std::uint64_t start, std::uint64_t last_work) const {
    const std::uint64_t now = warp_.nanoseconds();
    return now - last_work > terms_.idle_ns || now - start > terms_.residence_ns ? 1 : 0;
  }

  WAYWISER_DEVICE void park() {
    if (warp_.lane() != 0) return;
    warp_.store(&shared_.parked, 1u);
    warp_.store(&box_.parked, terms_.launch);
  }

  WAYWISER_DEVICE void load(Packets& packets) const {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < per_lane; ++i)
      if (i * Warp::lanes < rows_ * packets_per_row)
        packets[i] = warp_.load(&box_.order[i * Warp::lanes + warp_.lane()]);
  }

  // False: not all of the message has arrived.
  WAYWISER_DEVICE bool carry_out(const Packets& packets, std::uint32_t number) {
    Packet first = packets[0];
    for (std::uint32_t& word : first.words) word = warp_.broadcast(word);
    const Order order = Order::read(first);
    const unsigned seen = rows_;
    rows_ = order.rows();
    if (seen < rows_) return false;
    bool arrived = true;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < per_lane; ++i)
      if (i * Warp::lanes + warp_.lane() < order.packets()) arrived = arrived && packets[i].number == number;
    if (!warp_.all(arrived)) return false;
    const bool put = order.task == Task::put_packets || order.task == Task::put_staged;
    constexpr unsigned host_bytes_per_ns = 25;  // of a reply, which it reads before it can go on
    rest_ = put ? terms_.put_rest_ns : terms_.get_rest_ns + order.bytes / host_bytes_per_ns;
    if (order.task == Task::stop)
      stopped_ = true;
    else if (order.task == Task::put_packets)
      put_packets(order, number, packets);
    else if (helpers() == 0 || (order.task == Task::get_packets && order.bytes <= packets_per_row * packet_bytes))
      carry_out_alone(order, number);
    else
      call_helpers(order, number);
    return true;
  }

  // The data is visible to every later kernel and copy of this GPU before the host hears of it.
  WAYWISER_DEVICE void put_packets(const Order& order, std::uint32_t number, const Packets& packets) {
    const bool flag = order.bytes == 8 && reinterpret_cast<std::uintptr_t>(order.address) % 8 == 0;
    WAYWISER_UNROLL
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
    warp_.fence();
    warp_.join();
    if (warp_.lane() == 0) warp_.store(&box_.done, number);
  }

  WAYWISER_DEVICE unsigned helpers() const { return warp_.count() - 1; }

  WAYWISER_DEVICE void carry_out_alone(const Order& order, std::uint32_t number) {
    if (order.task == Task::get_packets) {
      if (warp_.lane() == 0) warp_.store(&box_.done, number);  // for the next launch: the host waits for the packets
      return get_packets(order, number, 0, 1);
    }
    copy_staged(order, 0, order.bytes);
    publish(order);
    warp_.join();
    if (warp_.lane() == 0) warp_.store(&box_.done, number);
  }

  // Waits for them: looking for orders in the meantime would delay their reads.
  WAYWISER_DEVICE void call_helpers(const Order& order, std::uint32_t number) {
    ++calls_;
    if (warp_.lane() == 0) {
      shared_.order = order;
      warp_.fence_to_block();
      warp_.store(&shared_.number, number);
      if (order.task == Task::get_packets) warp_.store(&box_.done, number);
      while (warp_.load(&shared_.finished) != calls_ * helpers()) {
      }
    }
    warp_.join();
  }

  // Packets of a reply tell the host themselves that they are there; else the last helper does.
  WAYWISER_DEVICE void carry_out_share(const Order order, std::uint32_t number) {
    const bool packets = order.task == Task::get_packets;
    const unsigned share = warp_.index() - 1;
    if (packets)
      get_packets(order, number, share, helpers());
    else
      copy_share(order, share);
    warp_.join();
    if (warp_.lane() != 0) return;
    const bool last = (warp_.add(&shared_.finished, 1) + 1) % helpers() == 0;
    if (last && !packets) warp_.store(&box_.done, number);
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
      copy(far, near, bytes);
    else
      copy(near, far, bytes);
  }

  WAYWISER_DEVICE void publish(const Order& order) {
    if (order.task == Task::put_staged)
      warp_.fence();
    else
      warp_.fence_to_host();
  }

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
    constexpr unsigned batch = 5;
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
  std::uint32_t calls_ = 0;
  unsigned rows_ = 1;  // of the last message: as many are looked at
  unsigned rest_ = 0;
  bool stopped_ = false;
};

}  // namespace waywiser
