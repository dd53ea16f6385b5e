#pragma once

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "waywiser/heap/proxy/proxy_messages.hpp"

namespace waywiser {

// What the kernels of this rank have asked for in the ring: sends it to the ranks that own the memory, in the order of
// the tickets, and tells the kernels what these answer.
class ProxyRequests {
 public:
  // `peers`: ranks that stores do not reach.
  ProxyRequests(const ProxyMessages& messages, one_sided::ProxyRing& ring, const std::vector<int>& peers);
  ProxyRequests(const ProxyRequests&) = delete;
  ProxyRequests& operator=(const ProxyRequests&) = delete;

  // True: something has moved.
  bool advance();
  // Whether nothing is under way.
  bool are_complete() const;
  std::string progress_text() const;
  void cancel() noexcept;

 private:
  struct Peer {
    int rank = 0;
    std::deque<std::uint64_t> under_way;  // tickets
    ProxyAnswer answer;
    Message head, piece;
    bool takes_piece = false;
  };
  // An access under way, by slot.
  struct Sent {
    std::uint64_t ticket = 0;
    Message head, piece;
    bool used = false, answered = false;
  };

  bool send_new();
  bool take_answer(Peer& peer);
  bool finish();
  bool waits_for_others(const Peer& peer) const;
  Sent& sent(std::uint64_t ticket) { return sent_[ticket % one_sided::proxy_slots]; }
  Peer& peer_of(int rank);

  const ProxyMessages& messages_;
  one_sided::ProxyRing& ring_;
  std::deque<Peer> peers_;
  std::array<Sent, one_sided::proxy_slots> sent_;
  std::uint64_t next_ = 0, completed_ = 0;  // tickets
};

}  // namespace waywiser
