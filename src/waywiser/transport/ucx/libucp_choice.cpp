#include "waywiser/transport/ucx/libucp_choice.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "waywiser/base/environment.hpp"

namespace waywiser {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libucp.so.0";
constexpr const char* system_folders[] = {"/usr/local/lib",         "/usr/local/lib64", "/lib/x86_64-linux-gnu",
                                          "/lib/aarch64-linux-gnu", "/lib64",           "/usr/lib64",
                                          "/opt/hpcx/ucx/lib"};

std::vector<std::string> listed_folders(const std::string& list) {
  std::vector<std::string> folders;
  std::istringstream text(list);
  for (std::string folder; std::getline(text, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  return folders;
}

// Beside Waywiser's own wheel, which a program in any language may link, else that of the Python which this library was
// built with: packages are found nowhere else without Python, and a folder that is no Python's is nobody's to trust.
std::vector<std::string> wheels_without_python() {
  Dl_info info{};
  static const int within = 0;
  if (::dladdr(&within, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  for (fs::path folder = fs::canonical(info.dli_fname, error).parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (folder.filename() == "site-packages" || folder.filename() == "dist-packages")
      return {(folder / "libucx" / "lib").string()};
  const fs::path built_with = WAYWISER_LIBUCX_OF_PYTHON;
  if (built_with.is_absolute()) return {(built_with / "lib").string()};
  return {};
}

std::string first_in(const std::vector<std::string>& folders) {
  std::error_code error;
  for (const std::string& folder : folders)
    if (const fs::path path = fs::path(folder) / file_name; fs::exists(path, error)) return path.string();
  return {};
}

bool has_entries(const fs::path& folder) {
  std::error_code error;
  return fs::directory_iterator(folder, error) != fs::directory_iterator();
}

bool knows_cuda(const std::string& libucp) {
  std::error_code error;
  const fs::path real = fs::canonical(libucp, error);
  for (const fs::directory_entry& entry : fs::directory_iterator(real.parent_path() / "ucx", error))
    if (entry.path().filename().string().starts_with("libuct_cuda.so")) return true;
  return false;
}

}  // namespace

LibucpPlaces libucp_places() {
  LibucpPlaces places;
  places.maps = maps_of_this_process();
  places.named = library_override("ucp");
  places.system = listed_folders(environment("LD_LIBRARY_PATH").value_or(""));
  places.system.insert(places.system.end(), std::begin(system_folders), std::end(system_folders));
  places.wheels = listed_folders(environment("WAYWISER_LIBUCX").value_or(""));
  for (const std::string& folder : wheels_without_python()) places.wheels.push_back(folder);
  places.has_rdma_device = has_entries("/sys/class/infiniband");
  std::error_code error;
  places.has_nvidia_driver = fs::exists("/proc/driver/nvidia/version", error);
  return places;
}

LibucpChoice choose_libucp(const LibucpPlaces& places) {
  if (const std::string mapped = mapped_libucp(places.maps); !mapped.empty()) return {mapped, "mapped"};
  if (places.named) return {*places.named, "environment"};
  std::vector<LibucpChoice> found{{first_in(places.system), "system"}, {first_in(places.wheels), "wheel"}};
  if (!places.has_rdma_device) std::ranges::reverse(found);
  std::erase_if(found, [](const LibucpChoice& each) { return each.path.empty(); });
  if (places.has_nvidia_driver)
    std::ranges::stable_partition(found, [](const LibucpChoice& each) { return knows_cuda(each.path); });
  return found.empty() ? LibucpChoice{"", "none"} : found.front();
}

std::string mapped_libucp(const std::string& maps) {
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const auto start = line.find('/');
    if (start == std::string::npos) continue;
    const std::string file = line.substr(start);
    if (file.substr(file.rfind('/') + 1).starts_with("libucp")) return file;
  }
  return {};
}

std::string maps_of_this_process() {
  std::ostringstream text;
  text << std::ifstream("/proc/self/maps").rdbuf();
  return text.str();
}

}  // namespace waywiser
