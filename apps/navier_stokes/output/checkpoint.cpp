#include "apps/navier_stokes/output/checkpoint.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <utility>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/output/durable_file.hpp"

namespace flow {
namespace {

using waywiser::Error;
using waywiser::ErrorKind;

constexpr std::string_view magic = "flow checkpoint 1\n";

// FNV-1a of 64 bits.
std::uint64_t sum_of(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return sum;
}

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

std::string packed(const FlowValues& values, const std::string& key) {
  std::string text(magic);
  text += key + "\n";
  text += bytes_of(values.steps);
  text += bytes_of(values.time);
  for (const std::vector<double>* each :
       {&values.velocity, &values.pressure, &values.old_explicit, &values.flux, &values.skew_flux})
    text.append(reinterpret_cast<const char*>(each->data()), each->size() * sizeof(double));
  const std::uint64_t sum = sum_of(text);
  text += bytes_of(sum);
  return text;
}

FlowValues unpacked(std::string_view text, const FlowValues& like, const std::string& key, const std::string& file) {
  const std::string begin = std::string(magic) + key + "\n";
  if (!text.starts_with(begin))
    throw Error(ErrorKind::invalid_input, file + " is not a checkpoint of this run, or of another number of ranks");
  FlowValues values = like;
  std::vector<std::vector<double>*> lists = {&values.velocity, &values.pressure, &values.old_explicit, &values.flux,
                                             &values.skew_flux};
  std::size_t length = begin.size() + sizeof(values.steps) + sizeof(values.time) + sizeof(std::uint64_t);
  for (const std::vector<double>* each : lists) length += each->size() * sizeof(double);
  std::uint64_t sum = 0;
  if (text.size() == length) std::memcpy(&sum, text.data() + length - sizeof(sum), sizeof(sum));
  if (text.size() != length || sum != sum_of(text.substr(0, length - sizeof(sum))))
    throw Error(ErrorKind::corrupt, file + " is damaged");
  const char* from = text.data() + begin.size();
  const auto take = [&](void* to, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    from += bytes;
  };
  take(&values.steps, sizeof(values.steps));
  take(&values.time, sizeof(values.time));
  for (std::vector<double>* each : lists) take(each->data(), each->size() * sizeof(double));
  return values;
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

std::filesystem::path Checkpoints::file_of(const std::string& state) const {
  return folder_ / ("checkpoint." + state + "." + std::to_string(group_.rank()));
}

std::string Checkpoints::named() const {
  std::int64_t code = -1;  // twice the step, and 1 for a `b`
  agree(group_, [&] {
    if (group_.rank() != 0 || !std::filesystem::exists(folder_ / "checkpoint")) return;
    const std::string text = read_file(folder_ / "checkpoint");
    std::int64_t step = -1;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), step);
    const std::string_view rest(end, text.data() + text.size());
    if (failed != std::errc() || step < 0 || (rest != "\n" && rest != "b\n"))
      throw Error(ErrorKind::corrupt, (folder_ / "checkpoint").string() + " is damaged");
    code = 2 * step + (rest == "b\n" ? 1 : 0);
  });
  group_.broadcast(std::span(&code, 1), 0);
  return code < 0 ? "" : std::to_string(code / 2) + (code % 2 == 1 ? "b" : "");
}

std::string Checkpoints::named_or_none() const {
  try {
    return named();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
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

void Checkpoints::remove_but(const std::string& one, const std::string& other) const {
  const std::string end = "." + std::to_string(group_.rank());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string file = entry.path().filename().string();
    const bool kept = entry.path() == file_of(one) || entry.path() == file_of(other);
    if (file.starts_with("checkpoint.") && file.ends_with(end) && !kept) std::filesystem::remove(entry.path(), ignored);
  }
}

void Checkpoints::write(const FlowValues& values) {
  if (newest_.empty()) newest_ = named_or_none();
  std::string state = std::to_string(values.steps);
  if (state == newest_) state += "b";
  agree(group_, [&] { write_durably(file_of(state), packed(values, key_)); });
  name(state);
  before_ = std::exchange(newest_, state);
  has_written_ = true;
  remove_but(newest_, before_);
}

void Checkpoints::take_back() {
  if (!std::exchange(has_written_, false)) return;
  name(before_);
  std::error_code ignored;
  std::filesystem::remove(file_of(newest_), ignored);
  newest_ = before_;
}

std::optional<FlowValues> Checkpoints::newest(const FlowValues& like) {
  newest_ = named();
  if (newest_.empty()) return {};
  std::optional<FlowValues> values;
  const std::filesystem::path file = file_of(newest_);
  agree(group_, [&] { values = unpacked(read_file(file), like, key_, file.string()); });
  return values;
}

}  // namespace flow
