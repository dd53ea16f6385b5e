#include "waywiser/comm/bootstrap/sharing.hpp"

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

using Parts = std::vector<std::vector<std::byte>>;  // by rank; those that are not known are empty

// What a rank and those below it share.
std::vector<std::byte> bytes_of(const Parts& parts, const std::vector<int>& ranks) {
  WireWriter all;
  for (const int rank : ranks) {
    all.number(static_cast<std::uint32_t>(rank));
    all.block(parts[static_cast<std::size_t>(rank)]);
  }
  return all.bytes();
}

void take_parts(const Frame& frame, const RankTree& tree, int from, Parts& parts, std::vector<int>& known) {
  WireReader reader(frame.body, "what " + named(from) + " shares");
  while (reader.left() != 0) {
    const int rank = static_cast<int>(reader.number<std::uint32_t>());
    if (tree.towards(rank) != from) reader.refuse(named(rank) + " is not below it");
    const auto part = reader.block(largest_part);
    parts[static_cast<std::size_t>(rank)].assign(part.begin(), part.end());
    known.push_back(rank);
  }
}

std::size_t largest_of(std::size_t ranks) { return (largest_part + 2 * sizeof(std::uint64_t)) * ranks; }

// Up the tree, and down.
std::vector<std::byte> of_all(Muster& muster, const RankTree& tree, std::span<const std::byte> mine,
                              Deadline deadline) {
  Parts parts(muster.ranks.size());
  parts[static_cast<std::size_t>(tree.rank)].assign(mine.begin(), mine.end());
  std::vector<int> known{tree.rank};
  for (const int rank : tree.below()) {
    Connection& line = *muster.lines.at(rank);
    line.set_limit(largest_of(muster.ranks.size()));
    take_parts(heard(line, FrameKind::share, rank, deadline), tree, rank, parts, known);
    line.set_limit(usual_frame);
  }
  std::vector<std::byte> all;
  if (tree.is_root()) {
    WireWriter writer;
    for (const auto& part : parts) writer.block(part);
    all = writer.bytes();
  } else {
    Connection& line = *muster.lines.at(tree.above());
    line.set_limit(largest_of(muster.ranks.size()));
    line.ask(FrameKind::share, bytes_of(parts, known), deadline);
    all = heard(line, FrameKind::shared, tree.above(), Deadline::in(deadline.left() + above_patience)).body;
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

std::vector<std::vector<std::byte>> share_with_all(Muster& muster, int rank, std::span<const std::byte> mine,
                                                   Deadline deadline, const std::function<bool()>& interrupted) {
  const Interruptible interruptible(interrupted);
  const RankTree tree{rank, static_cast<int>(muster.ranks.size()), muster.branches};
  std::vector<std::vector<std::byte>> parts;
  try {
    const std::vector<std::byte> all = of_all(muster, tree, mine, deadline);
    WireReader reader(all, "what the ranks share");
    for (std::size_t i = 0; i < muster.ranks.size(); ++i) {
      const auto part = reader.block(largest_part);
      parts.emplace_back(part.begin(), part.end());
    }
    reader.end();
  } catch (const Error& error) {
    if (rank == 0 || error.kind() != ErrorKind::interrupted) tell_refusal(muster, error.what());
    throw;
  }
  return parts;
}

void tell_refusal(Muster& muster, const std::string& why) noexcept {
  std::vector<Connection*> lines;
  for (const auto& [other, line] : muster.lines) lines.push_back(line.get());
  say_farewell(lines, why);
}

}  // namespace waywiser
