#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "waywiser/device/region.hpp"

namespace waywiser {

// A folder that is gone after the test. It stands beside the test's program, not in a temporary file system: that one
// may have no direct access. If a test is killed, what stays behind stays among what was built.
class StorageFolder {
 public:
  StorageFolder() {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    std::string name = (program.parent_path() / "storage-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test");
    path_ = name;
  }
  StorageFolder(const StorageFolder&) = delete;
  StorageFolder& operator=(const StorageFolder&) = delete;
  ~StorageFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::size_t files() const {
    const std::filesystem::directory_iterator begin(path_);
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

// Bytes that differ from their neighbours, other ones for each `seed`.
inline std::vector<std::byte> storage_bytes(std::size_t count, unsigned seed = 1) {
  std::vector<std::byte> bytes(count);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& each : bytes) {
    state = state * 1664525u + 1013904223u;
    each = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

inline Region region_of(std::vector<std::byte>& bytes) { return {bytes.data(), bytes.size(), host(0)}; }

inline void put_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<std::byte> bytes_of_file(const std::filesystem::path& path) {
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace waywiser
