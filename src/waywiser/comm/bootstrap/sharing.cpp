#include "waywiser/comm/bootstrap/sharing.hpp"

#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/farewell.hpp"

namespace waywiser {
namespace {

constexpr std::size_t largest_part = 80 << 10;
constexpr std::size_t usual_frame = 4096;
constexpr Seconds above_patience = 2;  // the ranks above know who is missing

std::string named(int rank) { return "rank " + std::to_string(rank); }

Error of_rank(int rank, const Error& error) {
  return {error.kind(), named(rank) + " while the group formed: " + error.what()};
}

Frame heard(Connection& line, FrameKind kind, int from, Deadline deadline) {
  Frame frame;
  try {
    frame = line.receive(deadline);
  } catch (const Error& error) {
    throw of_rank(from, error);
  }
  if (frame.kind == FrameKind::refused) throw Error(ErrorKind::io, reason_in(frame));
  if (frame.kind != kind) throw Error(ErrorKind::invalid_input, named(from) + " sent what is not its turn");
  return frame;
}

using Parts = std::map<int, std::vector<std::byte>>;  // by rank

// What a rank and those below it share.
std::vector<std::byte> bytes_of(const Parts& parts) {
  WireWriter all;
  for (const auto& [rank, part] : parts) {
    all.number(static_cast<std::uint32_t>(rank));
    all.block(part);
  }
  return all.bytes();
}

// The parts that differ, and which of them each rank has said.
std::vector<std::byte> bytes_of_all(const Parts& parts) {
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  WireWriter different, by_rank;
  for (const auto& [rank, part] : parts) {
    const std::string_view words(reinterpret_cast<const char*>(part.data()), part.size());
    const auto [entry, is_new] = numbers.try_emplace(words, static_cast<std::uint32_t>(numbers.size()));
    if (is_new) different.block(part);
    by_rank.number(entry->second);
  }
  WireWriter all;
  all.number(static_cast<std::uint32_t>(numbers.size()));
  all.raw(different.bytes());
  all.raw(by_rank.bytes());
  return std::move(all).bytes();
}

void take_parts(const Frame& frame, const RankTree& tree, int from, Parts& parts) {
  WireReader reader(frame.body, "what " + named(from) + " shares");
  while (reader.left() != 0) {
    const int rank = static_cast<int>(reader.number<std::uint32_t>());
    if (tree.towards(rank) != from) reader.refuse(named(rank) + " is not below it");
    const auto part = reader.block(largest_part);
    parts[rank].assign(part.begin(), part.end());
  }
}

std::size_t largest_of(std::size_t ranks) { return (largest_part + 2 * sizeof(std::uint64_t)) * ranks; }

// Up the tree, and down.
std::vector<std::byte> of_all(Muster& muster, const RankTree& tree, std::span<const std::byte> mine,
                              Deadline deadline) {
  Parts parts{{tree.rank, {mine.begin(), mine.end()}}};
  for (const int rank : tree.below()) {
    Connection& line = *muster.lines.at(rank);
    line.set_limit(largest_of(muster.ranks.size()));
    take_parts(heard(line, FrameKind::share, rank, deadline), tree, rank, parts);
    line.set_limit(usual_frame);
  }
  std::vector<std::byte> all;
  if (tree.is_root()) {
    all = bytes_of_all(parts);
  } else {
    Connection& line = *muster.lines.at(tree.above());
    line.set_limit(largest_of(muster.ranks.size()));
    line.ask(FrameKind::share, bytes_of(parts), deadline);
    Frame frame = heard(line, FrameKind::shared, tree.above(), Deadline::in(deadline.left() + above_patience));
    all = std::move(frame.body);
    line.set_limit(usual_frame);
  }
  for (const int rank : tree.below()) try {
      muster.lines.at(rank)->send(FrameKind::shared, all, deadline);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io)
        if (const std::string why = last_words(*muster.lines.at(rank), muster.ranks.size()); !why.empty())
          throw Error(ErrorKind::io, why);
      throw of_rank(rank, error);
    }
  return all;
}

}  // namespace

SharedParts::SharedParts(std::vector<std::byte> all, std::size_t ranks) : all_(std::move(all)) {
  WireReader reader(all_, "what the ranks share");
  const auto parts = reader.number<std::uint32_t>();
  if (parts > ranks) reader.refuse("more parts than ranks");
  parts_.reserve(parts);
  numbers_.reserve(ranks);
  for (std::uint32_t i = 0; i < parts; ++i) parts_.push_back(reader.block(largest_part));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    numbers_.push_back(reader.number<std::uint32_t>());
    if (numbers_.back() >= parts) reader.refuse("a rank without a part");
  }
  reader.end();
}

SharedParts share_with_all(Muster& muster, int rank, std::span<const std::byte> mine, Deadline deadline,
                           const std::function<bool()>& interrupted) {
  const Interruptible interruptible(interrupted);
  const RankTree tree{rank, static_cast<int>(muster.ranks.size()), muster.branches};
  try {
    return {of_all(muster, tree, mine, deadline), muster.ranks.size()};
  } catch (const Error& error) {
    if (rank == 0 || error.kind() != ErrorKind::interrupted) tell_refusal(muster, error.what());
    throw;
  }
}

void tell_refusal(Muster& muster, const std::string& why) noexcept {
  std::vector<Connection*> lines;
  for (const auto& [other, line] : muster.lines) lines.push_back(line.get());
  say_farewell(lines, why);
}

}  // namespace waywiser
