#pragma once

#include <span>
#include <utility>
#include <vector>

#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {

// One network card of this end, and where messages over it go.
struct UcxRail {
  UcxWorker* worker = nullptr;
  const UcxEndpoint* endpoint = nullptr;  // nullptr: nothing is sent over it
  std::string name = {};                  // what it uses, for people
};

// One message on its way over several rails, each with its share of the bytes; the first one carries even an empty
// message. Both ends split it alike. Measurements and groups send by it.
class RailParts {
 public:
  struct Part {
    UcxRequest request = nullptr;
    std::size_t rail = 0;
    Bytes bytes = 0;
  };

  // The status of the first part that cannot be begun. The parts before it are under way. The region stays as it is
  // until all are over.
  ucs_status_t send(std::span<const UcxRail> rails, const std::vector<int>& percents, ConstRegion source,
                    ucp_tag_t tag);
  ucs_status_t receive(std::span<const UcxRail> rails, const std::vector<int>& percents, Region destination,
                       ucp_tag_t tag, ucp_tag_t mask = ~ucp_tag_t{0});
  // In place of a message: until all that was sent over the rails has arrived.
  ucs_status_t flush(std::span<const UcxRail> rails);

  // True: all are complete. `ended(part, status, received)` hears of each; `received` is what came, of a receive.
  template <typename Ended>
  bool test(std::span<const UcxRail> rails, Ended ended) {
    while (!parts_.empty()) {
      Part& part = parts_.back();
      UcxWorker& worker = *rails[part.rail].worker;
      ucp_tag_recv_info_t received{};
      const ucs_status_t status = receiving_ ? worker.test(part.request, received) : worker.test(part.request);
      if (status == UCS_INPROGRESS) return false;
      const Part over = part;
      parts_.pop_back();
      ended(over, status, received);
    }
    return true;
  }
  bool is_open() const noexcept { return !parts_.empty(); }
  bool is_receiving() const noexcept { return receiving_; }
  // Those that are under way, for who gives them up; none is left.
  std::vector<Part> take() noexcept { return std::exchange(parts_, {}); }

 private:
  template <typename Post>
  ucs_status_t post(std::size_t rails, const std::vector<int>& percents, Bytes bytes, Post post);
  ucs_status_t remember(UcxRequest request, std::size_t rail, Bytes bytes);

  std::vector<Part> parts_;
  bool receiving_ = false;
};

}  // namespace waywiser
