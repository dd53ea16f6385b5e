#include "apps/navier_stokes/output/checkpoint.hpp"

#include <charconv>
#include <cstring>
#include <functional>
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
  std::int32_t failed = why.empty() ? 0 : kind + 1;
  group.all_reduce(std::span(&failed, 1), std::span(&failed, 1), waywiser::ReduceOp::max);
  if (failed == 0) return;
  throw Error(static_cast<ErrorKind>(failed - 1), why.empty() ? "another rank's checkpoint failed" : why);
}

}  // namespace

std::filesystem::path Checkpoints::file_of(std::int64_t step) const {
  return folder_ / ("checkpoint." + std::to_string(step) + "." + std::to_string(group_.rank()));
}

void Checkpoints::write(const FlowValues& values) {
  agree(group_, [&] { write_durably(file_of(values.steps), packed(values, key_)); });
  agree(group_, [&] {
    if (group_.rank() == 0) write_durably(folder_ / "checkpoint", std::to_string(values.steps) + "\n");
  });
  const std::string end = "." + std::to_string(group_.rank());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoint.") && name.ends_with(end) && entry.path() != file_of(values.steps))
      std::filesystem::remove(entry.path(), ignored);
  }
}

std::optional<FlowValues> Checkpoints::newest(const FlowValues& like) {
  std::int64_t step = -1;
  agree(group_, [&] {
    if (group_.rank() != 0 || !std::filesystem::exists(folder_ / "checkpoint")) return;
    const std::string text = read_file(folder_ / "checkpoint");
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), step);
    if (code != std::errc() || step < 0 || std::string_view(end, text.data() + text.size()) != "\n")
      throw Error(ErrorKind::corrupt, (folder_ / "checkpoint").string() + " is damaged");
  });
  group_.broadcast(std::span(&step, 1), 0);
  if (step < 0) return {};
  std::optional<FlowValues> values;
  agree(group_, [&] { values = unpacked(read_file(file_of(step)), like, key_, file_of(step).string()); });
  return values;
}

}  // namespace flow
