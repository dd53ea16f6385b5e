#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/heap/proxy/delivery.hpp"
#include "waywiser/heap/proxy/proxy_messages.hpp"

namespace waywiser {

// What other ranks ask of the memory of this one: all that has come is carried out together, by a kernel of the GPU
// or, in host memory, here; then it is answered.
class ProxyArrivals {
 public:
  // `peers`: ranks whose stores do not reach this one.
  ProxyArrivals(const ProxyMessages& messages, std::shared_ptr<Platform> platform, Region memory,
                const std::vector<int>& peers);
  ProxyArrivals(const ProxyArrivals&) = delete;
  ProxyArrivals& operator=(const ProxyArrivals&) = delete;

  // True: something has moved, or will soon.
  bool advance();
  // After it nothing touches the memory any more.
  void settle(Seconds patience) noexcept;
  void cancel() noexcept;

 private:
  struct Answered {
    ProxyAnswer answer;
    Message head, piece;
  };
  struct Peer {
    int rank = 0;
    Memory memory;  // for arrivals
    std::uint64_t received = 0, begun = 0, ended = 0;
    Message head, piece;
    enum class Takes { nothing, head, piece } takes = Takes::nothing;
    std::array<Answered, one_sided::proxy_slots> answers;

    one_sided::ProxyArrival& arrival(std::uint64_t number) const;
  };

  bool receive(Peer& peer);
  std::string why_not(const one_sided::ProxyRequest& request) const;
  void begin();
  void launch(const one_sided::Delivery& delivery);
  bool is_carried_out() const;
  void answer();
  void answer(Peer& peer, std::uint64_t number);
  bool any_wait() const;

  const ProxyMessages& messages_;
  const std::shared_ptr<Platform> platform_;
  const Region memory_;
  std::deque<Peer> peers_;
  std::unique_ptr<Stream> stream_;  // of the GPU
  std::unique_ptr<Event> ended_;
  Memory list_;             // of addresses of arrivals, as the GPU reaches them
  bool under_way_ = false;  // a delivery
};

}  // namespace waywiser
