#include "waywiser/device/cuda/gpu_state.hpp"

#include <cuda_runtime_api.h>

#include <array>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/environment.hpp"

namespace waywiser {
namespace {

struct Utilization {
  unsigned gpu, memory;
};

// The few calls that a report needs; 0 is success for all of them.
class Nvml {
 public:
  Nvml() : library_({library_override("libnvml").value_or("libnvidia-ml.so.1")}) {
    if (!library_.loaded()) return;
    init_ = library_.find<int()>("nvmlInit_v2");
    ready_ = init_ != nullptr && init_() == 0;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    const auto shutdown = ready_ ? library_.find<int()>("nvmlShutdown") : nullptr;
    if (shutdown != nullptr) shutdown();
  }

  bool ready() const { return ready_; }
  std::string why_not() const { return library_.loaded() ? "NVML did not start" : library_.why_not(); }

  Json driver() const {
    std::array<char, 96> text{};
    const auto get = library_.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
    if (get == nullptr || get(text.data(), static_cast<unsigned>(text.size())) != 0) return nullptr;
    return text.data();
  }

  Json device(const std::string& bus_id) const {
    void* handle = nullptr;
    const auto by_bus = library_.find<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (by_bus == nullptr || by_bus(bus_id.c_str(), &handle) != 0) return Json::object();
    Json facts;
    const auto power = number("nvmlDeviceGetPowerUsage", handle);
    facts["sm_clock_mhz"] = number("nvmlDeviceGetClockInfo", handle, 1);
    facts["memory_clock_mhz"] = number("nvmlDeviceGetClockInfo", handle, 2);
    facts["temperature_c"] = number("nvmlDeviceGetTemperature", handle, 0);
    facts["power_w"] = power.is_null() ? power : Json(power.get<unsigned>() / 1000);
    facts["persistence"] = number("nvmlDeviceGetPersistenceMode", handle);
    Utilization use{};
    const auto get_use = library_.find<int(void*, Utilization*)>("nvmlDeviceGetUtilizationRates");
    if (get_use != nullptr && get_use(handle, &use) == 0) facts["use_percent"] = use.gpu;
    return facts;
  }

 private:
  Json number(const char* call, void* handle) const {
    unsigned value = 0;
    const auto get = library_.find<int(void*, unsigned*)>(call);
    return get != nullptr && get(handle, &value) == 0 ? Json(value) : Json();
  }
  Json number(const char* call, void* handle, int which) const {
    unsigned value = 0;
    const auto get = library_.find<int(void*, int, unsigned*)>(call);
    return get != nullptr && get(handle, which, &value) == 0 ? Json(value) : Json();
  }

  DynamicLibrary library_;
  int (*init_)() = nullptr;
  bool ready_ = false;
};

}  // namespace

Json cuda_state(const std::vector<CudaDevice>& devices) {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const Nvml nvml;
  Json state = {{"driver_cuda", driver}, {"runtime_cuda", runtime}};
  state["nvml"] = nvml.ready() ? Json("available") : Json(nvml.why_not());
  state["driver"] = nvml.ready() ? nvml.driver() : Json();
  state["gpus"] = Json::array();
  for (const CudaDevice& device : devices) {
    Json facts = {{"name", device.name}, {"bus_id", device.bus_id}};
    if (nvml.ready()) facts.update(nvml.device(device.bus_id));
    state["gpus"].push_back(facts);
  }
  return state;
}

}  // namespace waywiser
