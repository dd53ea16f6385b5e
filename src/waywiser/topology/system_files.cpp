#include "waywiser/topology/system_files.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

namespace waywiser {
namespace {

constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_lines = 65536;
constexpr int most_cpus = 65536;

std::string cleaned(std::string text) {
  if (text.size() > longest_line) text.resize(longest_line);
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = ' ';
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<long long> whole(std::string_view text, int base) {
  long long value = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (problem != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::filesystem::path SystemFiles::path(std::string_view inside) const {
  return root_.empty() ? std::filesystem::path(inside) : root_ / std::filesystem::path(inside).relative_path();
}

std::vector<std::string> SystemFiles::lines(std::string_view file) const {
  std::vector<std::string> found;
  std::ifstream stream(path(file));
  for (std::string text; found.size() < most_lines && std::getline(stream, text);) found.push_back(cleaned(text));
  return found;
}

std::optional<std::string> SystemFiles::line(std::string_view file) const {
  std::ifstream stream(path(file));
  std::string text;
  if (!std::getline(stream, text)) return std::nullopt;
  return cleaned(text);
}

std::optional<long long> SystemFiles::number(std::string_view file) const {
  const std::optional<std::string> text = line(file);
  if (!text) return std::nullopt;
  return text->starts_with("0x") ? whole(text->substr(2), 16) : whole(*text, 10);
}

std::vector<std::string> SystemFiles::list(std::string_view folder) const {
  std::vector<std::string> names;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(path(folder), problem))
    names.push_back(cleaned(entry.path().filename().string()));
  std::ranges::sort(names);
  return names;
}

bool SystemFiles::exists(std::string_view inside) const {
  std::error_code problem;
  return std::filesystem::exists(path(inside), problem);
}

std::vector<std::string> SystemFiles::resolved(std::string_view link) const {
  std::error_code problem;
  const std::filesystem::path real = std::filesystem::canonical(path(link), problem);
  std::vector<std::string> parts;
  if (problem) return parts;
  for (const std::filesystem::path& part : real) parts.push_back(part.string());
  return parts;
}

std::vector<int> parse_cpulist(std::string_view text) {
  std::set<int> cpus;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto dash = part.find('-');
    const auto first = whole(part.substr(0, dash), 10);
    const auto last = dash == part.npos ? first : whole(part.substr(dash + 1), 10);
    if (!first || !last || *first < 0 || *last >= most_cpus) continue;
    for (long long cpu = *first; cpu <= *last; ++cpu) cpus.insert(static_cast<int>(cpu));
  }
  return {cpus.begin(), cpus.end()};
}

std::string format_cpulist(std::vector<int> cpus) {
  std::ranges::sort(cpus);
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i;
    while (end + 1 < cpus.size() && cpus[end + 1] <= cpus[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (cpus[end] > cpus[i]) text += '-' + std::to_string(cpus[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace waywiser
