#include <algorithm>

#include "waywiser/collective/extents.hpp"
#include "waywiser/collective/neighbor_exchange/neighbor_exchange.hpp"
#include "waywiser/collective/schedule_maker.hpp"

namespace waywiser::collective::neighbor_exchange {
namespace {

struct NeighborMessage {
  int peer = 0, tag = 0;
  Block block;
};

std::vector<NeighborMessage> messages(const CollectiveCall& call, bool sent, Block buffer) {
  std::vector<NeighborMessage> all;
  for (const Neighbor& neighbor : call.neighbors) {
    buffer.count = sent ? neighbor.send : neighbor.receive;
    all.push_back({neighbor.peer, sent ? neighbor.send_tag : neighbor.receive_tag, buffer});
    buffer.offset += buffer.count;
  }
  std::ranges::stable_sort(all, {}, &NeighborMessage::tag);
  return all;
}

}  // namespace

Schedule direct(const CollectiveCall& call) {
  ScheduleMaker maker("direct", call);
  const std::vector<NeighborMessage> received = messages(call, false, output(0));
  std::size_t total = 0;
  for (const Neighbor& neighbor : call.neighbors) total += neighbor.send;
  const Block kept = call.in_place ? maker.allocate(total) : input(total);
  if (call.in_place) maker.copy(0, kept, input(total));
  std::vector<Block> to_self;
  for (const NeighborMessage& message : messages(call, true, kept))
    if (message.peer != call.rank)
      maker.send(1, message.peer, message.block);
    else
      to_self.push_back(message.block);
  std::size_t own = 0;
  for (const NeighborMessage& message : received)
    if (message.peer != call.rank)
      maker.receive(1, message.peer, message.block);
    else
      maker.copy(1, message.block, to_self.at(own++));
  return maker.finish();
}

CollectiveCost direct_cost(const CollectiveCall& call) {
  CollectiveCost cost;
  for (const Neighbor& neighbor : call.neighbors) {
    if (neighbor.peer == call.rank) continue;
    cost.steps = 1;
    ++cost.messages;
    cost.elements += neighbor.send;
  }
  return cost;
}

}  // namespace waywiser::collective::neighbor_exchange
