#include "waywiser/table/piece_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

constexpr std::size_t head_words = 5, node_words = 5;
constexpr int tag_of_head = 0, tag_of_body = 1;
constexpr Bytes longest_block = Bytes{1} << 40;

static_assert(sizeof(PieceHead) == head_words * 8 && sizeof(PackedNode) == node_words * 8);

bool is_done(Future& future) { return !future.is_under_way() || future.done(); }

}  // namespace

PieceExchange::PieceExchange(Group group, PieceBlocks& blocks, std::size_t nodes, Bytes budget, Arrival arrival)
    : group_(std::move(group)),
      blocks_(blocks),
      words_(head_words + node_words * nodes),
      budget_(budget),
      most_out_(budget / 2),
      arrival_(std::move(arrival)),
      incoming_(static_cast<std::size_t>(group_.size() - 1)),
      open_(group_.size() - 1),
      busy_(static_cast<std::size_t>(group_.size())),
      paths_(busy_.size()) {
  for (std::size_t i = 0; i < incoming_.size(); ++i) {
    incoming_[i].from = static_cast<int>(i) < group_.rank() ? static_cast<int>(i) : static_cast<int>(i) + 1;
    ask_for_head(incoming_[i]);
  }
}

bool PieceExchange::Outgoing::is_over() { return is_done(head) && is_done(body); }

void PieceExchange::make_room(Bytes bytes) {
  turn();
  while (out_ > 0 && out_ + bytes > most_out_) wait();
}

void PieceExchange::send(int to, const PieceHead& head, const std::vector<PackedNode>& nodes,
                         std::shared_ptr<std::byte> block) {
  auto words = std::make_shared<Words>(words_);
  std::memcpy(words->data(), &head, sizeof head);
  if (!nodes.empty()) std::memcpy(words->data() + head_words, nodes.data(), nodes.size() * sizeof nodes.front());
  const bool has_body = block && head.bytes > 0;
  Outgoing& out = outgoing_.emplace_back();
  out.to = to;
  out.bytes = has_body ? head.bytes : 0;
  out_ += out.bytes;
  note();
  out.head = group_.send(std::span<const std::uint64_t>(*words), to, tag_of_head, Mode::begin);
  out.head.keep(words);
  if (!has_body) return;
  busy_[static_cast<std::size_t>(to)].out.begin(now_seconds());
  out.body = group_.send(bytes_at(block, head.bytes), to, tag_of_body, Mode::begin);
  out.body.keep(std::move(block));
}

void PieceExchange::turn() {
  for (Incoming& from : incoming_)
    while (move_on(from)) {
    }
  std::erase_if(outgoing_, [this](Outgoing& each) {
    if (!each.is_over()) return false;
    note_sent(each);
    return true;
  });
}

void PieceExchange::note_sent(const Outgoing& piece) {
  if (piece.bytes == 0) return;
  out_ -= piece.bytes;
  const auto to = static_cast<std::size_t>(piece.to);
  paths_[to].seconds_out += busy_[to].out.end(now_seconds());
  add_piece(paths_[to], message_way(group_, piece.to, blocks_.place(), piece.bytes), piece.bytes);
}

void PieceExchange::wait() {
  std::vector<Future*> under_way;
  const auto add = [&](Future& future) {
    if (future.is_under_way()) under_way.push_back(&future);
  };
  for (Incoming& from : incoming_) add(from.awaits == Incoming::Awaits::body ? from.body : from.head);
  for (Outgoing& each : outgoing_) add(each.head), add(each.body);
  if (!under_way.empty()) {
    const Seconds before = now_seconds();
    wait_any(under_way);
    waited_ += now_seconds() - before;
  }
  turn();
}

void PieceExchange::ask_for_head(Incoming& from) {
  from.words.resize(words_);
  from.awaits = Incoming::Awaits::head;
  from.head = group_.recv(std::span(from.words), from.from, tag_of_head, Mode::begin);
}

bool PieceExchange::move_on(Incoming& from) {
  using Awaits = Incoming::Awaits;
  switch (from.awaits) {
    case Awaits::nothing: return false;
    case Awaits::head:
      if (!is_done(from.head)) return false;
      take_head(from);
      return true;
    case Awaits::room: {
      const Bytes bytes = from.words[3];
      if (in_ > 0 && in_ + bytes > budget_ / 2) return false;
      in_ += bytes;
      note();
      from.block = blocks_.of_part(from.words[1], bytes);
      busy_[static_cast<std::size_t>(from.from)].in.begin(now_seconds());
      from.body = group_.recv(bytes_at(from.block, bytes), from.from, tag_of_body, Mode::begin);
      from.awaits = Awaits::body;
      return true;
    }
    case Awaits::body:
      if (!is_done(from.body)) return false;
      in_ -= from.words[3];
      paths_[static_cast<std::size_t>(from.from)].seconds_in +=
          busy_[static_cast<std::size_t>(from.from)].in.end(now_seconds());
      hand_over(from);
      return true;
  }
  return false;
}

void PieceExchange::take_head(Incoming& from) {
  PieceHead head;
  std::memcpy(static_cast<void*>(&head), from.words.data(), sizeof head);
  if (head.bytes > longest_block)
    throw Error(ErrorKind::corrupt, "rank " + std::to_string(from.from) + " announces a piece of a table of " +
                                        std::to_string(head.bytes) + " bytes");
  if (head.kind == PieceKind::rows && head.bytes > 0)
    from.awaits = Incoming::Awaits::room;
  else
    hand_over(from);
}

void PieceExchange::hand_over(Incoming& from) {
  ArrivedPiece piece{from.from, {}, std::vector<PackedNode>((words_ - head_words) / node_words), {}};
  std::memcpy(static_cast<void*>(&piece.head), from.words.data(), sizeof piece.head);
  if (!piece.nodes.empty())
    std::memcpy(static_cast<void*>(piece.nodes.data()), from.words.data() + head_words,
                piece.nodes.size() * sizeof piece.nodes.front());
  piece.block = std::move(from.block);
  from.block.reset();
  if (piece.head.kind == PieceKind::end) {
    from.awaits = Incoming::Awaits::nothing;
    --open_;
  } else {
    ask_for_head(from);
  }
  arrival_(std::move(piece));
}

Elements PieceExchange::bytes_at(const std::shared_ptr<std::byte>& block, Bytes bytes) const {
  return {Region{block.get(), bytes, blocks_.place()}, DataType::uint8};
}

void PieceExchange::note() noexcept { most_ = std::max(most_, out_ + in_); }

}  // namespace waywiser
