#include "waywiser/topology/nvml.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "waywiser/base/environment.hpp"

namespace waywiser {
namespace {

constexpr int success = 0;
constexpr unsigned most_nvlinks = 36;
constexpr unsigned most_gpus = 64;
constexpr int read_access = 0;
constexpr int memory_clock = 2;
constexpr unsigned nvlink_speed_field = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON

template <std::size_t size>
std::string text_of(const std::array<char, size>& text) {
  return {text.data(), ::strnlen(text.data(), size)};
}

// "00000000:3B:00.0" -> "0000:3b:00.0"
std::string sysfs_bus_id(const NvmlPciInfo& info) {
  std::string text(info.bus_id, ::strnlen(info.bus_id, sizeof info.bus_id));
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text.size() == 16 && text.starts_with("0000") ? text.substr(4) : text;
}

NvlinkEnd end_of(int type) {
  return type == 0 ? NvlinkEnd::gpu : type == 1 ? NvlinkEnd::cpu : type == 2 ? NvlinkEnd::nvswitch : NvlinkEnd::unknown;
}

std::string peer_words(int status) {
  switch (status) {
    case 0: return "ok";
    case 1: return "the chipset does not support it";
    case 2: return "the GPU does not support it";
    case 3: return "different root complexes";
    case 4: return "switched off by a driver setting";
    case 5: return "not supported";
    default: return "";
  }
}

int small(unsigned number) { return number <= 1024 ? static_cast<int>(number) : 0; }

// Two transfers a clock.
double memory_bandwidth(const NvmlFunctions& nvml, NvmlDeviceHandle* device) {
  unsigned bits = 0;
  unsigned megahertz = 0;
  const bool known = nvml.memory_bus_width != nullptr && nvml.memory_bus_width(device, &bits) == success &&
                     nvml.max_clock != nullptr && nvml.max_clock(device, memory_clock, &megahertz) == success;
  return known ? 2e6 * megahertz * bits / 8 : 0;
}

void read_nvlinks(const NvmlFunctions& nvml, NvmlDeviceHandle* device, NvmlGpu& gpu) {
  if (nvml.nvlink_state == nullptr) return;
  for (unsigned number = 0; number < most_nvlinks; ++number) {
    int up = 0;
    if (nvml.nvlink_state(device, number, &up) != success) continue;
    ++gpu.nvlinks;
    if (up == 0) continue;
    NvmlLink link;
    int type = -1;
    NvmlPciInfo info{};
    if (nvml.nvlink_remote_type != nullptr && nvml.nvlink_remote_type(device, number, &type) == success)
      link.end = end_of(type);
    if (nvml.nvlink_remote_pci != nullptr && nvml.nvlink_remote_pci(device, number, &info) == success)
      link.bus_id = sysfs_bus_id(info);
    gpu.active.push_back(link);
  }
  NvmlFieldValue speed{};
  speed.field = nvlink_speed_field;
  if (gpu.active.empty() || nvml.field_values == nullptr || nvml.field_values(device, 1, &speed) != success) return;
  if (speed.result == success && speed.value_type == 1 && speed.value.whole >= 1000 && speed.value.whole <= 1'000'000)
    gpu.nvlink_megabytes = speed.value.whole;
}

NvmlGpu read_gpu(const NvmlFunctions& nvml, NvmlDeviceHandle* device, NvmlReport& report) {
  NvmlGpu gpu;
  std::array<char, 96> text{};
  NvmlPciInfo info{};
  NvmlMemory memory{};
  int minor = 0;
  unsigned number = 0;
  unsigned pending = 0;
  if (nvml.device_name != nullptr && nvml.device_name(device, text.data(), text.size()) == success)
    gpu.name = text_of(text);
  if (nvml.pci_info != nullptr && nvml.pci_info(device, &info) == success) gpu.bus_id = sysfs_bus_id(info);
  if (nvml.memory_info != nullptr && nvml.memory_info(device, &memory) == success) gpu.memory_bytes = memory.total;
  if (nvml.compute_capability != nullptr) nvml.compute_capability(device, &gpu.compute_major, &minor);
  if (nvml.pcie_generation != nullptr && nvml.pcie_generation(device, &number) == success)
    gpu.pcie_generation = small(number);
  if (nvml.pcie_width != nullptr && nvml.pcie_width(device, &number) == success) gpu.pcie_width = small(number);
  if (nvml.pcie_width_now != nullptr && nvml.pcie_width_now(device, &number) == success)
    gpu.pcie_width_now = small(number);
  if (nvml.mig_mode != nullptr && nvml.mig_mode(device, &number, &pending) == success && number == 1)
    report.notes.push_back("gpu" + std::to_string(report.gpus.size()) +
                           " is split by MIG: its instances reach no peers");
  gpu.memory_bandwidth = memory_bandwidth(nvml, device);
  read_nvlinks(nvml, device, gpu);
  return gpu;
}

void read_peers(const NvmlFunctions& nvml, const std::vector<NvmlDeviceHandle*>& devices, NvmlReport& report) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < devices.size(); ++j) {
      int status = -1;
      const bool asked = i != j && nvml.p2p_status != nullptr &&
                         nvml.p2p_status(devices[i], devices[j], read_access, &status) == success;
      report.gpus[i].peers.push_back(asked ? peer_words(status) : "");
    }
  }
}

std::string failure(const NvmlFunctions& nvml, int code) {
  return nvml.error_string == nullptr ? "error " + std::to_string(code) : nvml.error_string(code);
}

// Shuts NVML down again, whatever happens.
class NvmlSession {
 public:
  explicit NvmlSession(const NvmlFunctions& nvml) : nvml_(nvml) {}
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;
  ~NvmlSession() {
    if (nvml_.shutdown != nullptr) nvml_.shutdown();
  }

 private:
  const NvmlFunctions& nvml_;
};

}  // namespace

NvmlReport read_nvml(const NvmlFunctions& nvml) {
  NvmlReport report;
  if (nvml.init == nullptr || nvml.device_count == nullptr || nvml.device_by_index == nullptr) {
    report.why_not = "NVML lacks the functions that list GPUs";
    return report;
  }
  if (const int code = nvml.init(); code != success) {
    report.why_not = "NVML does not start: " + failure(nvml, code);
    return report;
  }
  const NvmlSession session(nvml);
  std::array<char, 96> text{};
  int cuda = 0;
  unsigned count = 0;
  if (nvml.driver_version != nullptr && nvml.driver_version(text.data(), text.size()) == success)
    report.driver = text_of(text);
  if (nvml.cuda_version != nullptr && nvml.cuda_version(&cuda) == success)
    report.cuda = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  if (const int code = nvml.device_count(&count); code != success)
    report.notes.push_back("NVML does not count GPUs: " + failure(nvml, code));
  std::vector<NvmlDeviceHandle*> devices;
  for (unsigned i = 0; i < std::min(count, most_gpus); ++i) {
    NvmlDeviceHandle* device = nullptr;
    if (const int code = nvml.device_by_index(i, &device); code != success) {
      report.notes.push_back("NVML does not open GPU " + std::to_string(i) + ": " + failure(nvml, code));
      continue;
    }
    devices.push_back(device);
    report.gpus.push_back(read_gpu(nvml, device, report));
  }
  read_peers(nvml, devices, report);
  return report;
}

NvmlReport read_nvml() {
  const std::optional<std::string> named = library_override("nvml");
  const DynamicLibrary library(named ? std::vector{*named} : std::vector<std::string>{"libnvidia-ml.so.1"});
  if (library.loaded()) return read_nvml(nvml_functions(library));
  NvmlReport report;
  report.why_not = "NVML cannot be opened: " + library.why_not();
  return report;
}

}  // namespace waywiser
