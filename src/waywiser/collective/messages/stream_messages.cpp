#include "waywiser/collective/messages/stream_messages.hpp"

#include <new>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

// Equal at both ends.
messages::MessagePart part_for(const messages::Layout& layout, std::byte* data, Bytes bytes, DataType type, int peer,
                               const MessageAlgorithm& algorithm) {
  messages::MessagePart part{data, bytes, 0, static_cast<std::uint32_t>(peer), 0, 0, messages::Kind::ll};
  on_stream::Description description;
  description.type = type;
  description.count = bytes / bytes_of(type);
  part.description = description.word();
  part.signature = std::uint64_t{description.of_message()} << 32;
  messages::cut(part, layout, algorithm);
  return part;
}

}  // namespace

Bytes StreamMessages::bytes_for(const messages::Layout& layout) {
  return layout.bytes() + sizeof(messages::MessageState);
}

StreamMessages::StreamMessages(Platform& platform, Stream& stream, int rank, const messages::Layout& layout,
                               Region memory, std::shared_ptr<const ExposedTable> exposed, MessageAlgorithms algorithms,
                               int ranks_on_a_gpu)
    : rank_(rank),
      multiprocessors_(
          static_cast<std::uint32_t>(std::max(platform.multiprocessors(stream.place().index) / ranks_on_a_gpu, 1))),
      algorithms_(std::move(algorithms)),
      layout_(layout),
      memory_(memory.slice(0, bytes_for(layout))),
      notice_(
          platform.allocate(platform.nearest_host(stream.place().index), sizeof(block::Notice), Allocation::pinned)),
      launches_(platform.create_launch_cache(stream.place())),
      exposed_(std::move(exposed)) {
  new (notice_.region().data) block::Notice();
  clear(stream, memory_.slice(0, layout_.numbered()));
  clear(stream, state());
}

void StreamMessages::connect(std::span<const Region> landings) {
  if (landings.size() != layout_.ranks)
    throw Error(ErrorKind::invalid_input,
                std::to_string(landings.size()) + " landing memories for " + std::to_string(layout_.ranks) + " ranks");
  landings_.assign(landings.begin(), landings.end());
}

Region StreamMessages::state() const { return memory_.slice(layout_.bytes(), sizeof(messages::MessageState)); }

messages::MessageArguments StreamMessages::arguments(Stream& stream, Seconds deadline) {
  deadline_ = deadline;
  messages::MessageArguments terms{};
  for (std::size_t rank = 0; rank < landings_.size(); ++rank)
    if (landings_[rank].bytes != 0) terms.landing[rank] = stream.reach(landings_[rank].slice(0, layout_.bytes()));
  terms.state = reinterpret_cast<messages::MessageState*>(stream.reach(state()));
  terms.notice = reinterpret_cast<block::Notice*>(stream.reach(notice_.region().slice(0, sizeof(block::Notice))));
  terms.exposed = exposed_->reached_from(stream);
  terms.layout = layout_;
  terms.rank = static_cast<std::uint32_t>(rank_);
  terms.deadline_ns = static_cast<std::uint64_t>(deadline * 1e9);
  return terms;
}

messages::MessagePart StreamMessages::giving(const messages::MessageArguments& terms, ConstElements data, int to,
                                             Stream& stream) const {
  const ConstRegion from = data.region;
  auto* bytes = const_cast<std::byte*>(stream.reach(from));  // only read
  return with_places(terms, part_for(layout_, bytes, from.bytes, data.type, to, algorithms_.of(from.bytes, ll128_)),
                     true);
}

messages::MessagePart StreamMessages::taking(const messages::MessageArguments& terms, Elements data, int from,
                                             Stream& stream) const {
  const Region to = data.region;
  messages::MessagePart part = with_places(
      terms, part_for(layout_, stream.reach(to), to.bytes, data.type, from, algorithms_.of(to.bytes, ll128_)), false);
  part.slot = exposed_->slot_of(to);
  return part;
}

void StreamMessages::enqueue(ConstElements give, int to, Elements take, int from, Stream& stream, Seconds deadline) {
  const messages::MessageArguments terms = arguments(stream, deadline);
  messages::MessageWork work;
  if (give.region.bytes != 0) work.give = giving(terms, give, to, stream);
  if (take.region.bytes != 0) work.take = taking(terms, take, from, stream);
  if (work.give.blocks + work.take.blocks == 0) return;
  work.places = !exposed_->empty();
  work.failed = on_stream::kept_word(notice());
  if (!fits(work, multiprocessors_)) return launch(terms, messages::joint_of(work), stream);
  Kernel kernel{1, 1, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = messages::cuda_launcher(launches_.get(), terms, work);
  else
    kernel.body = [=](const ThreadContext&) { messages::run_on_host(terms, work); };
  stream.launch(kernel);
}

// A second message with a rank in one direction goes into the next kernel, and so on.
void StreamMessages::enqueue(std::span<const PeerMessage> all, const OwnBlock& own, Stream& stream, Seconds deadline) {
  const messages::MessageArguments terms = arguments(stream, deadline);
  std::vector<const PeerMessage*> giving_left, taking_left;
  for (const PeerMessage& each : all) {
    if (each.give.region.bytes != 0) giving_left.push_back(&each);
    if (each.take.region.bytes != 0) taking_left.push_back(&each);
  }
  messages::OwnCopy stays;
  if (own.from.bytes != 0) stays = messages::own_copy(stream.reach(own.from), stream.reach(own.to), own.from.bytes);
  while (!giving_left.empty() || !taking_left.empty() || stays.bytes != 0) {
    messages::JointWork work;
    work.own = std::exchange(stays, {});
    std::uint32_t given = 0, taken = 0;  // ranks, as bits
    std::erase_if(giving_left, [&](const PeerMessage* each) {
      if ((given >> each->rank & 1) != 0) return false;
      given |= 1u << each->rank;
      work.parts[work.count++] = giving(terms, each->give, each->rank, stream);
      return true;
    });
    work.gives = work.count;
    std::erase_if(taking_left, [&](const PeerMessage* each) {
      if ((taken >> each->rank & 1) != 0) return false;
      taken |= 1u << each->rank;
      work.parts[work.count++] = taking(terms, each->take, each->rank, stream);
      return true;
    });
    work.places = !exposed_->empty();
    launch(terms, work, stream);
  }
}

void StreamMessages::launch(const messages::MessageArguments& terms, messages::JointWork work, Stream& stream) {
  work.most_blocks = messages::most_blocks_at_once(std::max(work.count, 1u), multiprocessors_);
  work.failed = on_stream::kept_word(notice());
  Kernel kernel{1, 1, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = messages::cuda_launcher(launches_.get(), terms, work);
  else
    kernel.body = [=](const ThreadContext&) { messages::run_on_host(terms, work); };
  stream.launch(kernel);
}

block::Notice& StreamMessages::notice() const { return *reinterpret_cast<block::Notice*>(notice_.region().data); }

std::optional<Error> StreamMessages::failure(const std::string& stopped, std::span<const int> in_job) const {
  const auto failed = on_stream::failure_in(notice());
  if (!failed) return {};
  return on_stream::error_of(*failed, rank_, in_job, deadline_, stopped);
}

void StreamMessages::stop() noexcept { on_stream::stop(notice()); }

}  // namespace waywiser
