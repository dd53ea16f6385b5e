#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waywiser {

inline const std::string rdma_folder = "/sys/class/infiniband/";

// Reads /sys and /proc below a root folder: "" is this machine, another folder is a recorded or made-up one.
class SystemFiles {
 public:
  explicit SystemFiles(std::filesystem::path root) : root_(std::move(root)) {}

  // The first line, printable ASCII only, without blanks at its ends. Nothing when it cannot be read.
  std::optional<std::string> line(std::string_view file) const;
  std::vector<std::string> lines(std::string_view file) const;
  // A whole number in decimal or, after 0x, in hexadecimal.
  std::optional<long long> number(std::string_view file) const;
  std::vector<std::string> list(std::string_view folder) const;  // names, sorted
  bool exists(std::string_view path) const;
  // The parts of the real path that a symbolic link leads to; empty when it leads nowhere.
  std::vector<std::string> resolved(std::string_view link) const;

 private:
  std::filesystem::path path(std::string_view inside) const;
  std::filesystem::path root_;
};

// "0-2,8" <-> {0, 1, 2, 8}. Parts that cannot be read are left out; at most 65536 CPUs.
std::vector<int> parse_cpulist(std::string_view text);
std::string format_cpulist(std::vector<int> cpus);

}  // namespace waywiser
