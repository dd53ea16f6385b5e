#include "apps/navier_stokes/output/checkpoint.hpp"

#include <array>
#include <charconv>
#include <functional>
#include <utility>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/output/durable_file.hpp"
#include "apps/navier_stokes/output/saved_flow.hpp"

namespace flow {
namespace {

using waywiser::Error;
using waywiser::ErrorKind;

// A file that cannot be read is a wrong input of this run.
std::string read_input(const std::filesystem::path& file) {
  try {
    return read_file(file);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid_input, error.what());
  }
}

// Throws at all ranks what one has failed with.
void agree(waywiser::Group& group, const std::function<void()>& work) {
  std::string why;
  auto kind = static_cast<std::int32_t>(ErrorKind::io);
  try {
    work();
  } catch (const Error& error) {
    why = error.what();
    kind = static_cast<std::int32_t>(error.kind());
  }
  std::int32_t first = why.empty() ? group.size() : group.rank();
  group.all_reduce(std::span(&first, 1), std::span(&first, 1), waywiser::ReduceOp::min);
  if (first == group.size()) return;
  std::array<std::int32_t, 2> head = {kind, static_cast<std::int32_t>(why.size())};
  group.broadcast(std::span(head), first);
  why.resize(static_cast<std::size_t>(head[1]));
  if (!why.empty()) group.broadcast(std::span(reinterpret_cast<std::int8_t*>(why.data()), why.size()), first);
  throw Error(static_cast<ErrorKind>(head[0]), why);
}

}  // namespace

Checkpoints::Checkpoints(waywiser::Group& group, std::filesystem::path folder, std::string key, const LocalMesh& mesh)
    : group_(group),
      folder_(std::move(folder)),
      key_(std::move(key)),
      cells_(mesh.global.begin(), mesh.global.begin() + mesh.owned) {
  for (const LocalMesh::Face& face : mesh.faces) faces_.push_back(face.number);
}

std::filesystem::path Checkpoints::file_of(const std::string& state, int rank) const {
  return folder_ / ("checkpoint." + state + "." + std::to_string(rank));
}

std::string Checkpoints::named() const {
  std::int64_t code = -1;  // twice the step, and 1 for a `b`
  agree(group_, [&] {
    if (group_.rank() != 0 || !std::filesystem::exists(folder_ / "checkpoint")) return;
    const std::string text = read_input(folder_ / "checkpoint");
    std::int64_t step = -1;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), step);
    const std::string_view rest(end, text.data() + text.size());
    if (failed != std::errc() || step < 0 || (rest != "\n" && rest != "b\n"))
      throw Error(ErrorKind::invalid_input, (folder_ / "checkpoint").string() + " is damaged");
    code = 2 * step + (rest == "b\n" ? 1 : 0);
  });
  group_.broadcast(std::span(&code, 1), 0);
  return code < 0 ? "" : std::to_string(code / 2) + (code % 2 == 1 ? "b" : "");
}

std::string Checkpoints::named_or_none() const {
  try {
    return named();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_input) throw;
    return "";
  }
}

void Checkpoints::name(const std::string& state) {
  agree(group_, [&] {
    if (group_.rank() != 0) return;
    std::error_code ignored;
    if (state.empty())
      std::filesystem::remove(folder_ / "checkpoint", ignored);
    else
      write_durably(folder_ / "checkpoint", state + "\n");
  });
}

// Rank 0 also removes those of ranks that an earlier run had more.
void Checkpoints::remove_but(const std::string& one, const std::string& other) const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string file = entry.path().filename().string(), begin = "checkpoint.";
    const std::size_t dot = file.rfind('.');
    if (!file.starts_with(begin) || dot < begin.size()) continue;
    int rank = -1;
    const auto [end, failed] = std::from_chars(file.data() + dot + 1, file.data() + file.size(), rank);
    const bool mine = failed == std::errc() && end == file.data() + file.size() &&
                      (rank == group_.rank() || (group_.rank() == 0 && rank >= group_.size()));
    const std::string state = file.substr(begin.size(), dot - begin.size());
    if (mine && state != one && state != other) std::filesystem::remove(entry.path(), ignored);
  }
}

void Checkpoints::write(const FlowValues& values) {
  if (newest_.empty()) newest_ = named_or_none();
  std::string state = std::to_string(values.steps);
  if (state == newest_) state += "b";
  const SavedFlow saved{group_.size(), cells_, faces_, values};
  agree(group_, [&] { write_durably(file_of(state, group_.rank()), saved.packed(key_)); });
  name(state);
  before_ = std::exchange(newest_, state);
  has_written_ = true;
  remove_but(newest_, before_);
}

void Checkpoints::take_back() {
  if (!std::exchange(has_written_, false)) return;
  name(before_);
  std::error_code ignored;
  std::filesystem::remove(file_of(newest_, group_.rank()), ignored);
  newest_ = before_;
}

std::optional<FlowValues> Checkpoints::newest(const FlowValues& like) {
  newest_ = named();
  if (newest_.empty()) return {};
  std::int64_t ranks = 0;
  const auto read = [&](int rank) {
    const std::string file = file_of(newest_, rank).string();
    return SavedFlow::unpacked(read_input(file), key_, file);
  };
  agree(group_, [&] { ranks = group_.rank() == 0 ? read(0).ranks : 0; });
  group_.broadcast(std::span(&ranks, 1), 0);
  FlowValues values = like;
  FlowPlaces places(cells_, faces_);
  agree(group_, [&] {
    if (group_.rank() < ranks) places.take(read(group_.rank()), values);
    for (int rank = 0; rank < ranks && !places.full(); ++rank) places.take(read(rank), values);
    if (!places.full())
      throw Error(ErrorKind::invalid_input, file_of(newest_, 0).string() + " is of another mesh than this run's");
  });
  return values;
}

}  // namespace flow
