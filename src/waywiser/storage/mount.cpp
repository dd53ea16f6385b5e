#include "waywiser/storage/mount.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// The table writes a space as \040.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string four = text.substr(i, 4);
    const bool escaped = four.front() == '\\' && four.size() == 4;
    plain += escaped ? static_cast<char>(std::stoi(four.substr(1), nullptr, 8)) : four.front();
    if (escaped) i += 3;
  }
  return plain;
}

bool is_below(const std::string& path, const std::string& folder) {
  return folder == "/" || path == folder || path.starts_with(folder + "/");
}

}  // namespace

std::string mount_of(const std::string& mounts, const std::string& path) {
  std::istringstream lines(mounts);
  std::string best_type = "unknown", best;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, point, type;
    for (int i = 0; i < 5; ++i) words >> point;
    while (words >> word && word != "-") {
    }
    words >> type;
    point = unescaped(point);
    // A later mount at the same place hides the earlier one.
    if (type.empty() || !is_below(path, point) || point.size() < best.size()) continue;
    best = point;
    best_type = type;
  }
  return best_type + " " + best;
}

std::string storage_of(const StorageFile& file) {
  std::error_code problem;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file.cached_descriptor()), problem);
  if (problem) throw Error(ErrorKind::io, file.path() + ": cannot tell where it is: " + problem.message());
  std::ostringstream mounts;
  mounts << std::ifstream("/proc/self/mountinfo").rdbuf();
  return "storage " + mount_of(mounts.str(), path.string());
}

}  // namespace waywiser
