#include "waywiser/collective/messages/copied_messages.hpp"

#include <algorithm>
#include <set>

namespace waywiser {
Bytes CopiedMessages::area(const messages::Layout& layout) {
  const Bytes all = Bytes{messages::channels} * messages::bulk_slots * layout.bulk_piece;
  return all / CopyPipeline::slots / CopyPipeline::alignment * CopyPipeline::alignment;
}

// All ranks enqueue the steps in one order: by their number, the sender and the receiver. Two messages of a pair in one
// direction go one after the other.
void CopiedMessages::enqueue(const std::vector<Message>& all, const std::vector<Region>& landings, Stream& stream,
                             const ArgumentsOf& arguments_of, const Launch& launch) {
  std::multimap<std::pair<int, int>, const Message*> left;
  for (const Message& each : all) {
    const auto ends = ends_of(each);
    if (!ways_.contains(ends))
      ways_.try_emplace(ends, CopyPipeline(platform_, gpu_), platform_.create_launch_cache(gpu_));
    if (!left.contains(ends)) ways_.at(ends).pipeline.begin(stream);
    left.emplace(ends, &each);
  }
  std::set<std::pair<int, int>> used;
  while (!left.empty()) {
    std::vector<std::pair<CopyPipeline*, CopyPipeline::Work>> round;
    for (auto next = left.begin(); next != left.end();) {
      const auto ends = next->first;
      round.emplace_back(&ways_.at(ends).pipeline, work_of(*next->second, landings, arguments_of, launch));
      used.insert(ends);
      left.erase(next);
      next = left.upper_bound(ends);
    }
    std::size_t steps = 0;
    for (auto& [pipeline, work] : round) {
      pipeline->start(work);
      steps = std::max(steps, work.steps);
    }
    for (std::size_t step = 0; step < steps; ++step)
      for (auto& [pipeline, work] : round)
        if (step < work.steps) pipeline->step(work, step);
    for (auto& [pipeline, work] : round) pipeline->finish(work);
  }
  for (const auto& ends : used) ways_.at(ends).pipeline.join(stream);
}

// In the pair's last channels for LL, one for each direction, besides the first time. Between a pair, the signals of
// both directions are under way at once.
messages::MessagePart CopiedMessages::signal(const messages::MessageArguments& terms, const Message& message,
                                             bool gives, bool is_first, Stream& on) const {
  const auto place = static_cast<Bytes>(message.peer * 4 + (message.gives ? 2 : 0) + (gives ? 1 : 0));
  messages::MessagePart part;
  part.data = on.reach(words_.slice(place * sizeof(std::uint64_t), sizeof(std::uint64_t)));
  part.bytes = part.piece = sizeof(std::uint64_t);
  part.peer = static_cast<std::uint32_t>(message.peer);
  part.blocks = 1;
  part.kind = messages::Kind::ll;
  part.description = message.description;
  part.signature = message.signature;
  const bool with_data = gives == message.gives;  // in the direction of the message
  if (!with_data || !is_first) part.first_channel = layout_.ll_channels - (with_data ? 1 : 2);
  return messages::with_places(terms, part, gives);
}

CopyPipeline::Work CopiedMessages::work_of(const Message& message, const std::vector<Region>& landings,
                                           const ArgumentsOf& arguments_of, const Launch& launch) {
  const auto [sender, receiver] = ends_of(message);
  const Bytes bytes = message.data.bytes, piece = CopyPipeline::piece(bytes, message.pieces, area(layout_));
  const unsigned there = messages::peer_index(static_cast<unsigned>(receiver), static_cast<unsigned>(sender));
  const Region landing = landings[static_cast<std::size_t>(receiver)];
  const auto landed = [this, there, landing](std::size_t step, Bytes length) {
    return landing.slice(layout_.bulk(there, 0, 0) + step % CopyPipeline::slots * area(layout_), length);
  };
  const auto part = [data = message.data, bytes, piece](std::size_t step) {
    return data.slice(step * piece, std::min(piece, bytes - step * piece));
  };
  CopyPipeline::Work work;
  work.steps = (bytes + piece - 1) / piece;
  work.ends_together = true;
  work.nod = [this, message, arguments_of, launch, cache = ways_.at({sender, receiver}).launches.get(),
              is_first = true](Stream& on) mutable {
    const messages::MessageArguments terms = arguments_of(on);
    messages::MessageWork both;
    both.give = signal(terms, message, true, is_first, on);
    both.take = signal(terms, message, false, is_first, on);
    is_first = false;
    launch(terms, both, on, cache);
  };
  work.push = [gives = message.gives, landed, part](std::size_t step, Stream& on) {
    const Region mine = part(step);
    if (gives) on.copy(landed(step, mine.bytes), mine);
  };
  work.take = [gives = message.gives, landed, part](std::size_t step, Stream& on) {
    const Region mine = part(step);
    if (!gives) on.copy(mine, landed(step, mine.bytes));
  };
  return work;
}

}  // namespace waywiser
