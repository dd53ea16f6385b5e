#include "waywiser/collective/device_schedule/direct_agreement.hpp"

#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using program::DirectMessage;
using program::View;

// What a receiver tells its sender. `bytes` 0: no message.
struct DirectOffer {
  SharedRegion array;
  std::uint64_t bytes = 0, offset = 0;
  std::uint32_t sender = 0, message = 0;
  std::uint64_t run = 0, strides[3] = {}, counts[2] = {};
};

using Reason = std::array<char, 256>;

template <typename T>
std::vector<T> gathered(RankExchange& exchange, const std::vector<T>& mine, std::size_t ranks) {
  std::vector<T> all(mine.size() * ranks);
  exchange.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  return all;
}

class Agreeing {
 public:
  Agreeing(RankExchange& exchange, PeerMemory& peers, const Schedule& schedule, Place gpu, const Stream& stream)
      : exchange_(exchange), peers_(peers), schedule_(schedule), gpu_(gpu), stream_(stream) {
    result_.steps.resize(schedule.steps.size());
  }

  DirectAgreement run(const DeviceExecution* execution) {
    if (execution != nullptr) offer(*execution);
    const std::size_t most = most_of_all();
    if (most == 0) return std::move(result_);
    std::vector<DirectOffer> mine = offers_;
    mine.resize(most);
    const std::vector<DirectOffer> offers = gathered(exchange_, mine, ranks());
    std::vector<std::uint8_t> opened(offers.size());
    for (std::size_t i = 0; execution != nullptr && i < offers.size(); ++i)
      opened[i] = accept(static_cast<int>(i / most), offers[i]) ? 1 : 0;
    const std::vector<Reason> why_not = gathered(exchange_, std::vector{why_not_opened_}, ranks());
    settle(gathered(exchange_, opened, ranks()), why_not, most);
    return std::move(result_);
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(schedule_.ranks); }

  void need_slots(const std::string& why) {
    if (result_.why_slots.empty()) result_.why_slots = why;
  }

  void offer(const DeviceExecution& execution) {
    const program::DirectMessages found = execution.direct_messages();
    result_.why_slots = found.why_slots;
    for (const DirectMessage& each : found.all) {
      DirectOffer offer{{}, each.bytes, each.offset, each.sender, each.message, each.view.run, {}, {}};
      std::ranges::copy(each.view.strides, offer.strides);
      std::ranges::copy(each.view.counts, offer.counts);
      try {
        offer.array = peers_.share(execution.array(each.array));
      } catch (const Error& error) {
        need_slots(error.what());
        continue;
      }
      offers_.push_back(offer);
      steps_.push_back(each.step);
    }
  }

  std::size_t most_of_all() {
    const std::vector<std::size_t> counts = gathered(exchange_, std::vector{offers_.size()}, ranks());
    return *std::ranges::max_element(counts);
  }

  bool refuse(const std::string& why) {
    if (why_not_opened_[0] == '\0') why.copy(why_not_opened_.data(), why_not_opened_.size() - 1);
    return false;
  }

  // Of a message that this rank sends: opens the array. False: it needs a slot.
  bool accept(int receiver, const DirectOffer& offer) {
    if (offer.bytes == 0 || static_cast<int>(offer.sender) != schedule_.rank) return false;
    const auto step = program::storing_step(schedule_, receiver, offer.message);
    View view;
    view.run = offer.run;
    std::ranges::copy(offer.strides, view.strides);
    std::ranges::copy(offer.counts, view.counts);
    const auto extent = program::extent_of(view, offer.bytes);
    if (!step || !extent || offer.offset > offer.array.bytes || *extent > offer.array.bytes - offer.offset)
      return refuse("the offer is of no message, or lies outside of its array");
    SharedRegion array = offer.array;
    array.gpu.back() = '\0';
    try {
      std::shared_ptr<const Memory> memory = peers_.open(array, gpu_);
      const Region region = memory->region().slice(array.offset + offer.offset, *extent);
      view.data = stream_.reach(region);
      result_.opened.push_back(std::move(memory));
    } catch (const Error& error) {
      return refuse(error.what());
    }
    result_.steps[*step] = view;
    return true;
  }

  // `opened`: the answers of all ranks to all offers.
  void settle(const std::vector<std::uint8_t>& opened, std::vector<Reason> why_not, std::size_t most) {
    for (Reason& why : why_not) why.back() = '\0';
    for (std::size_t i = 0; i < offers_.size(); ++i) {
      const std::size_t of_mine = static_cast<std::size_t>(schedule_.rank) * most + i;
      const std::uint32_t sender = offers_[i].sender;
      if (opened[sender * most * ranks() + of_mine] == 0)
        need_slots("rank " + std::to_string(sender) + ": " + why_not[sender].data());
      else
        result_.steps[steps_[i]].data = &arrives_;
    }
  }

  // The address of all messages that this rank receives: they are only waited for.
  static inline std::byte arrives_{};

  RankExchange& exchange_;
  PeerMemory& peers_;
  const Schedule& schedule_;
  const Place gpu_;
  const Stream& stream_;
  std::vector<DirectOffer> offers_;
  std::vector<std::size_t> steps_;  // of the offers
  Reason why_not_opened_{};         // the first
  DirectAgreement result_;
};

}  // namespace

DirectAgreement DirectAgreement::of_all(RankExchange& exchange, PeerMemory& peers, const Schedule& schedule,
                                        const DeviceExecution* execution, Place gpu, const Stream& stream) {
  return Agreeing(exchange, peers, schedule, gpu, stream).run(execution);
}

}  // namespace waywiser
