#pragma once

#include <span>
#include <utility>
#include <vector>

#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {

// One network card of this end, and the destination of messages over it.
struct UcxRail {
  UcxWorker* worker = nullptr;
  const UcxEndpoint* endpoint = nullptr;  // nullptr: nothing is sent over it
  std::string name = {};                  // what it uses, for people
};

// One message in flight over several rails, each with its share of the bytes; an empty message uses the first rail.
// Both ends split alike. Used by measurements and groups.
class RailParts {
 public:
  struct Part {
    UcxRequest request = nullptr;
    std::size_t rail = 0;
    Bytes bytes = 0;
  };
  // A part that is complete.
  struct Ended {
    std::size_t rail;
    Bytes bytes;
    UcxStatus status;
    Bytes came;  // of a receive: the length of the message, and its tag
    std::uint64_t tag;
  };

  // Returns the status of the first part that cannot be started; earlier parts are under way. The region must stay
  // unchanged until all are over.
  UcxStatus send(std::span<const UcxRail> rails, const std::vector<int>& percents, ConstRegion source, ucp_tag_t tag);
  UcxStatus receive(std::span<const UcxRail> rails, const std::vector<int>& percents, Region destination, ucp_tag_t tag,
                    ucp_tag_t mask = ~ucp_tag_t{0});
  // Instead of a message: waits until all bytes sent over the rails have arrived.
  UcxStatus flush(std::span<const UcxRail> rails);

  // True: all are complete. Calls `take(ended)` for each.
  template <typename Take>
  bool test(std::span<const UcxRail> rails, Take take) {
    while (!parts_.empty()) {
      Part& part = parts_.back();
      UcxWorker& worker = *rails[part.rail].worker;
      ucp_tag_recv_info_t received{};
      const ucs_status_t status = receiving_ ? worker.test(part.request, received) : worker.test(part.request);
      if (status == UCS_INPROGRESS) return false;
      const Part over = part;
      parts_.pop_back();
      take(Ended{over.rail, over.bytes, status, received.length, received.sender_tag});
    }
    return true;
  }
  bool is_open() const noexcept { return !parts_.empty(); }
  bool is_receiving() const noexcept { return receiving_; }
  // The parts under way, for a caller that gives them up; none remains here.
  std::vector<Part> take() noexcept { return std::exchange(parts_, {}); }

 private:
  template <typename Post>
  ucs_status_t post(std::size_t rails, const std::vector<int>& percents, Bytes bytes, Post post);
  ucs_status_t remember(UcxRequest request, std::size_t rail, Bytes bytes);

  std::vector<Part> parts_;
  bool receiving_ = false;
};

}  // namespace waywiser
