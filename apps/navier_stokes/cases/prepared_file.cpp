#include "apps/navier_stokes/cases/prepared_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <sstream>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/output/durable_file.hpp"

namespace flow {
namespace {

constexpr std::string_view case_magic = "flow case 1\n", end_of_head = "\ndata\n";
constexpr std::size_t longest_head = 1 << 20;

template <typename T>
std::vector<T> copied(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

void PreparedFile::refuse(const std::string& why) const {
  throw waywiser::Error(waywiser::ErrorKind::invalid_input, file_ + ": " + why);
}

PreparedFile::PreparedFile(const std::filesystem::path& file) : file_(file.string()) {
  if (!std::filesystem::is_regular_file(file)) refuse("there is no such file");
  const std::string text = read_file(file);
  const std::size_t end = std::string_view(text).substr(0, longest_head).find(end_of_head);
  if (!text.starts_with(case_magic) || end == std::string::npos) refuse("it is no case that run.py has prepared");
  std::istringstream head(text.substr(case_magic.size(), end + 1 - case_magic.size()));
  const std::string_view data = std::string_view(text).substr(end + end_of_head.size());
  std::size_t at = 0;
  for (std::string line; std::getline(head, line);) read_line(line, data, at);
  if (at != data.size()) refuse("it is damaged");
}

void PreparedFile::read_line(const std::string& line, std::string_view data, std::size_t& at) {
  const std::size_t colon = line.find(": ");
  if (!line.starts_with("array ")) {
    if (colon == std::string::npos) refuse("it is damaged");
    texts_[line.substr(0, colon)] = line.substr(colon + 2);
    return;
  }
  std::istringstream words(line.substr(6));
  std::string name, type;
  std::size_t count = 0;
  if (!(words >> name >> type >> count) || (type != "f8" && type != "i8") || count > (data.size() - at) / 8)
    refuse("it is damaged");
  const std::string_view bytes = data.substr(at, 8 * count);
  at += bytes.size();
  if (type == "f8")
    numbers_[name] = copied<double>(bytes);
  else
    integers_[name] = copied<std::int64_t>(bytes);
}

bool PreparedFile::has(const std::string& name) const {
  return texts_.contains(name) || numbers_.contains(name) || integers_.contains(name);
}

const std::string& PreparedFile::text(const std::string& name) const {
  const auto found = texts_.find(name);
  if (found == texts_.end()) refuse("it has no " + name);
  return found->second;
}

double PreparedFile::number(const std::string& name) const {
  const std::string& word = text(name);
  double value = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    refuse("its " + name + " is no number");
  return value;
}

const std::vector<double>& PreparedFile::numbers(const std::string& name, std::size_t each) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) refuse("it has no " + name);
  if (found->second.size() % each != 0 ||
      !std::ranges::all_of(found->second, [](double value) { return std::isfinite(value); }))
    refuse("its " + name + " are damaged");
  return found->second;
}

const std::vector<std::int64_t>& PreparedFile::integers(const std::string& name, std::int64_t least, std::int64_t most,
                                                        std::size_t each) const {
  const auto found = integers_.find(name);
  if (found == integers_.end()) refuse("it has no " + name);
  if (found->second.size() % each != 0 ||
      !std::ranges::all_of(found->second, [=](std::int64_t value) { return value >= least && value <= most; }))
    refuse("its " + name + " are damaged");
  return found->second;
}

}  // namespace flow
