#include "waywiser/comm/bootstrap/sharing.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t largest_part = 80 << 10;
constexpr std::size_t usual_frame = 4096;
constexpr Seconds refusal_patience = 0.2;
constexpr Seconds root_patience = 2;  // rank 0 knows who is missing

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

std::vector<std::byte> gather(Muster& muster, std::span<const std::byte> mine, Deadline deadline) {
  std::vector<std::vector<std::byte>> parts(muster.ranks.size());
  parts.front().assign(mine.begin(), mine.end());
  for (auto& [rank, line] : muster.lines) {
    line->set_limit(largest_part);
    parts.at(static_cast<std::size_t>(rank)) = heard(*line, FrameKind::share, rank, deadline).body;
    line->set_limit(usual_frame);
  }
  WireWriter all;
  for (const auto& part : parts) all.block(part);
  return all.bytes();
}

std::vector<std::byte> of_all(Muster& muster, int rank, std::span<const std::byte> mine, Deadline deadline) {
  if (rank == 0) {
    const std::vector<std::byte> all = gather(muster, mine, deadline);
    for (auto& [other, line] : muster.lines) try {
        line->send(FrameKind::shared, all, deadline);
      } catch (const Error& error) {
        throw of_rank(other, error);
      }
    return all;
  }
  Connection& line = *muster.lines.at(0);
  line.set_limit((largest_part + sizeof(std::uint64_t)) * muster.ranks.size());
  line.ask(FrameKind::share, mine, deadline);
  Frame frame = heard(line, FrameKind::shared, 0, Deadline::in(deadline.left() + root_patience));
  line.set_limit(usual_frame);
  return std::move(frame.body);
}

}  // namespace

std::vector<std::vector<std::byte>> share_with_all(Muster& muster, int rank, std::span<const std::byte> mine,
                                                   Deadline deadline, const std::function<bool()>& interrupted) {
  const Interruptible interruptible(interrupted);
  std::vector<std::vector<std::byte>> parts;
  try {
    const std::vector<std::byte> all = of_all(muster, rank, mine, deadline);
    WireReader reader(all, "what the ranks share");
    for (std::size_t i = 0; i < muster.ranks.size(); ++i) {
      const auto part = reader.block(largest_part);
      parts.emplace_back(part.begin(), part.end());
    }
    reader.end();
  } catch (const Error& error) {
    if (rank == 0) tell_refusal(muster, error.what());
    throw;
  }
  return parts;
}

void tell_refusal(Muster& muster, const std::string& why) noexcept {
  for (auto& [other, line] : muster.lines) try {
      line->send(refused_frame(why), Deadline::in(refusal_patience));
    } catch (const std::exception&) {  // it has gone
    }
}

}  // namespace waywiser
