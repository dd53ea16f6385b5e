#include "waywiser/comm/bootstrap/text_gather.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_text = 1 << 20;

Frame expect(Connection& line, FrameKind kind, int rank, Deadline deadline) {
  try {
    Frame frame = line.receive(deadline);
    if (frame.kind == kind) return frame;
    throw Error(ErrorKind::invalid_input, "it sent an unexpected answer");
  } catch (const Error& error) {
    throw Error(error.kind(), "rank " + std::to_string(rank) + ": " + error.what());
  }
}

std::vector<std::string> hear_all(Muster& muster, std::string_view mine, Deadline deadline) {
  std::vector<std::string> texts(muster.ranks.size());
  texts.front() = mine;
  for (auto& [rank, line] : muster.lines) {
    line->set_limit(longest_text + sizeof(std::uint64_t));
    const Frame frame = expect(*line, FrameKind::waiting, rank, deadline);
    WireReader reader(frame.body, "text of a rank");
    texts.at(static_cast<std::size_t>(rank)) = reader.text(longest_text);
    reader.end();
  }
  for (auto& [rank, line] : muster.lines) line->send(FrameKind::finished, {}, deadline);
  return texts;
}

}  // namespace

std::vector<std::string> gather_texts(const Launch& launch, std::string_view mine, Deadline deadline) {
  if (mine.size() > longest_text) throw Error(ErrorKind::invalid_input, "a text of a rank has over 1 MiB");
  Launch own = launch;
  own.job += "-texts";                                                    // a group of the same job meets elsewhere
  Muster muster = meet(own, introduce(own), deadline, {}, {}, own.size);  // all are below rank 0
  if (own.rank == 0) return hear_all(muster, mine, deadline);
  Connection& line = *muster.lines.at(0);
  WireWriter writer;
  writer.text(mine);
  line.ask(FrameKind::waiting, writer.bytes(), deadline);
  expect(line, FrameKind::finished, 0, deadline);
  return {};
}

}  // namespace waywiser
