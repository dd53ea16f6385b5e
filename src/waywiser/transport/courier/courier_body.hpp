#pragma once

#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// The resident kernel, written for one warp. `Warp` provides: lanes (constant), lane(), index(), count(), block(),
// blocks(), broadcast(x), all(b), add(word, value), exchange(word, expected, value), load/store that bypass caches,
// fence_to_block(), fence(), fence_to_host(), join(), pause(), ticks(), ticks(ns), nanoseconds(). Lanes of a warp stay
// together. Each block serves a mailbox. A poll of host memory takes about 1 us, so the warps of a block poll in turn;
// the first one that sees a message carries it out.
template <typename Warp>
class CourierBody {
 public:
  WAYWISER_DEVICE CourierBody(const Warp& warp, CourierShared& shared, const CourierTerms& terms)
      : warp_(warp), shared_(shared), terms_(terms), box_(terms.boxes[warp.block()]) {}

  // Run by one lane, before any warp of its block. It must not repeat the work of an earlier launch.
  WAYWISER_DEVICE static void prepare(const Warp& warp, CourierShared& shared, const CourierTerms& terms) {
    shared = {};
    shared.claimed = shared.handled = warp.load(&terms.boxes[warp.block()].done);
  }

  WAYWISER_DEVICE void run() {
    const Packet* from = box_.orders[warp_.index()].packets;
    const std::uint64_t start = warp_.nanoseconds();
    for (unsigned turn = 1; read(shared_.over) == 0; ++turn) {
      wait_for_turn();
      Row row;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < per_lane; ++i) row.packets[i] = warp_.load(&from[i * Warp::lanes + warp_.lane()]);
      const std::uint32_t number = warp_.broadcast(row.packets[0].number), handled = read(shared_.handled);
      if (newer(number, handled)) try_to_carry_out(row, number, handled);
      if (ended(row) || (turn % 4 == 0 && is_over(start, handled))) warp_.store(&shared_.over, 1u);
    }
    leave();
  }

 private:
  static constexpr unsigned per_lane = packets_per_row / Warp::lanes;
  struct Row {
    Packet packets[per_lane];  // number i * lanes + lane() of the order
  };

  WAYWISER_DEVICE static bool newer(std::uint32_t number, std::uint32_t than) {
    return static_cast<std::int32_t>(number - than) > 0;
  }

  WAYWISER_DEVICE std::uint32_t read(const std::uint32_t& word) const { return warp_.broadcast(warp_.load(&word)); }

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
    constexpr unsigned lane = end_packet % Warp::lanes, i = end_packet / Warp::lanes;
    return !warp_.all(warp_.lane() != lane || row.packets[i].words[0] != terms_.launch);
  }

  // The first block decides for all.
  WAYWISER_DEVICE bool is_over(std::uint64_t start, std::uint32_t handled) {
    if (warp_.block() != 0) return false;
    const std::uint64_t now = warp_.nanoseconds();
    if (handled != seen_ || last_work_ == 0) last_work_ = now;
    seen_ = handled;
    return warp_.broadcast(now - last_work_ > terms_.idle_ns || now - start > terms_.residence_ns ? 1 : 0) != 0;
  }

  // The last poller of the first block tells the other blocks, then the host.
  WAYWISER_DEVICE void leave() {
    if (warp_.lane() != 0 || warp_.add(&shared_.left, 1) + 1 != warp_.count() || warp_.block() != 0) return;
    for (unsigned block = 1; block < warp_.blocks(); ++block)
      warp_.store(&terms_.boxes[block].orders[0].packets[end_packet], Packet{{terms_.launch, 0, 0}, 0});
    warp_.store(&box_.parked, terms_.launch);
  }

  // The latency-critical path: work that short messages do not need is in other functions.
  WAYWISER_DEVICE void try_to_carry_out(const Row& row, std::uint32_t number, std::uint32_t handled) {
    Packet first = row.packets[0];
    for (std::uint32_t& word : first.words) word = warp_.broadcast(word);
    const Order order = Order::read(first);
    if (!arrived(row, order.packets(), number) || !claim(number, handled)) return;
    if (order.task <= Task::put_words) {
      put_words(order, row);
      tell_put(number);
    } else if (order.task == Task::get_words) {
      order.bytes <= 4 * row_bytes ? get_words<4>(order, number) : get_words<12>(order, number);
      tell_done(number);
    } else if (order.task == Task::put_following) {
      if (put_following(order, number)) tell_put(number);
    } else {
      carry_out_apart(warp_, shared_, terms_, order, number, row);
    }
    warp_.fence_to_block();
    warp_.join();
    warp_.store(&shared_.handled, number);
  }

  WAYWISER_DEVICE bool arrived(const Row& row, unsigned count, std::uint32_t number) const {
    bool all = true;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned index = i * Warp::lanes + warp_.lane();
      all = all && (index >= count || index == end_packet || row.packets[i].number == number);
    }
    return warp_.all(all);
  }

  // Fails while another poller carries out the message before it, or if another poller was first.
  WAYWISER_DEVICE bool claim(std::uint32_t number, std::uint32_t handled) {
    std::uint32_t won = 0;
    if (warp_.lane() == 0) won = warp_.exchange(&shared_.claimed, handled, number) ? 1 : 0;
    return warp_.broadcast(won) != 0;
  }

  WAYWISER_DEVICE void put_words(const Order& order, const Row& row) {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned index = i * Warp::lanes + warp_.lane();
      if (index < first_data) continue;
      const Packet& packet = row.packets[i];
      if (order.task == Task::put_words)
        store_words(order, index - first_data, packet);
      else if (index == first_data)
        warp_.store(reinterpret_cast<std::uint64_t*>(order.address),
                    packet.words[0] | (std::uint64_t{packet.words[1]} << 32));
    }
  }

  WAYWISER_DEVICE void store_words(const Order& order, unsigned index, const Packet& packet) {
    const unsigned offset = index * packet_bytes;
    WAYWISER_UNROLL
    for (unsigned word = 0; word < 3; ++word)
      if (offset + 4 * word < order.bytes)
        warp_.store(reinterpret_cast<std::uint32_t*>(order.address + offset) + word, packet.words[word]);
  }

  // False: the data do not arrive.
  WAYWISER_DEVICE bool put_following(const Order& order, std::uint32_t number) {
    constexpr unsigned most = following_rows * packets_per_row / Warp::lanes, patience = 100000;
    const unsigned count = (order.bytes + packet_bytes - 1) / packet_bytes;
    Packet held[most];
    for (unsigned tries = 0;; ++tries) {
      WAYWISER_UNROLL
      for (unsigned i = 0; i < most; ++i)
        if (i * Warp::lanes + warp_.lane() < count)
          held[i] = warp_.load(&box_.following[i * Warp::lanes + warp_.lane()]);
      bool all = true;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < most; ++i)
        all = all && (i * Warp::lanes + warp_.lane() >= count || held[i].number == number);
      if (warp_.all(all)) break;
      if (tries == patience) return false;
      warp_.pause();
    }
    WAYWISER_UNROLL
    for (unsigned i = 0; i < most; ++i) store_words(order, i * Warp::lanes + warp_.lane(), held[i]);
    return true;
  }

  // Packets carry their own flags for the host. `rows` rows are in flight at once.
  template <unsigned rows>
  WAYWISER_DEVICE void get_words(const Order& order, std::uint32_t number) {
    constexpr unsigned most = rows * packets_per_row / Warp::lanes;
    const auto* from = reinterpret_cast<const std::uint32_t*>(order.address);
    const unsigned words = order.bytes / 4;
    Packet held[most];
    WAYWISER_UNROLL
    for (unsigned i = 0; i < most; ++i) {
      held[i] = {{0, 0, 0}, number};
      WAYWISER_UNROLL
      for (unsigned word = 0; word < 3; ++word) {
        const unsigned at = 3 * (i * Warp::lanes + warp_.lane()) + word;
        if (at < words) held[i].words[word] = warp_.load(from + at);
      }
    }
    WAYWISER_UNROLL
    for (unsigned i = 0; i < most; ++i) {
      const unsigned index = i * Warp::lanes + warp_.lane();
      if (3 * index < words) warp_.store(&box_.replies[index], held[i]);
    }
  }

  // The data are visible to every later kernel and copy of this GPU before the host hears of it.
  WAYWISER_DEVICE void tell_put(std::uint32_t number) {
    warp_.fence();
    tell_done(number);
  }

  WAYWISER_DEVICE void tell_done(std::uint32_t number) {
    warp_.join();
    if (warp_.lane() != 0) return;
    warp_.store(&box_.done, number);
    warp_.store(&box_.done_too, number);
  }

  // A separate function that takes nothing by address, so that the polling warp keeps its variables in registers.
  WAYWISER_DEVICE WAYWISER_APART static void carry_out_apart(Warp warp, CourierShared& shared, CourierTerms terms,
                                                             Order order, std::uint32_t number, Row row) {
    CourierBody body(warp, shared, terms);
    if (order.task == Task::put_bytes) {
      body.put_bytes(order, row);
      body.tell_put(number);
    } else if (order.task == Task::put_staged) {
      body.copy(order.address, body.box_.staged, order.bytes);
      body.tell_put(number);
    } else if (order.task == Task::get_bytes) {
      body.get_bytes(order, number);
      body.tell_done(number);
    } else {
      body.copy(body.box_.staged, order.address, order.bytes);
      warp.fence_to_host();
      body.tell_done(number);
    }
  }

  WAYWISER_DEVICE void put_bytes(const Order& order, const Row& row) {
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned index = i * Warp::lanes + warp_.lane();
      for (unsigned byte = 0; index >= first_data && byte < packet_bytes; ++byte) {
        const unsigned offset = (index - first_data) * packet_bytes + byte;
        if (offset < order.bytes)
          warp_.store(order.address + offset,
                      static_cast<std::byte>(row.packets[i].words[byte / 4] >> (8 * (byte % 4))));
      }
    }
  }

  WAYWISER_DEVICE void get_bytes(const Order& order, std::uint32_t number) {
    for (unsigned index = warp_.lane(); index * packet_bytes < order.bytes; index += Warp::lanes) {
      const unsigned offset = index * packet_bytes;
      std::byte bytes[packet_bytes] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < packet_bytes; ++i)
        if (offset + i < order.bytes) bytes[i] = warp_.load(order.address + offset + i);
      Packet packet{{0, 0, 0}, number};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < packet_bytes; ++i)
        packet.words[i / 4] |= static_cast<std::uint32_t>(bytes[i]) << (8 * (i % 4));
      warp_.store(&box_.replies[index], packet);
    }
  }

  WAYWISER_DEVICE void copy(std::byte* to, const std::byte* from, unsigned bytes) {
    const auto apart = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    if (apart % sizeof(Packet) == 0)
      copy_units<Packet>(to, from, bytes);
    else if (apart % 4 == 0)
      copy_units<std::uint32_t>(to, from, bytes);
    else
      copy_units<std::byte>(to, from, bytes);
  }

  // The odd bytes at the end are loaded first, so that they are in flight together with the rest.
  template <typename Unit>
  WAYWISER_DEVICE void copy_units(std::byte* to, const std::byte* from, unsigned bytes) {
    constexpr unsigned batch = 8, unit_bytes = sizeof(Unit);
    const unsigned units = bytes / unit_bytes, whole = units * unit_bytes;
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

  Warp warp_;
  CourierShared& shared_;
  CourierTerms terms_;
  Mailbox& box_;
  std::uint32_t seen_ = 0;
  std::uint64_t last_work_ = 0;
};

}  // namespace waywiser
