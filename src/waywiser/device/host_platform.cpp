#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/device/host_memory.hpp"
#include "waywiser/device/host_stream.hpp"
#include "waywiser/device/numa.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

constexpr const char* no_gpu = "the host back end has no GPU";

class HostPlatform : public Platform {
 public:
  std::string_view backend() const override { return "host"; }
  int gpu_count() const override { return 0; }

  Bytes free_memory(Place place) const override { return place.is_gpu() ? 0 : free_memory_of_node(place.index); }

  std::optional<std::string> why_no_peer_access(int, int) const override { return no_gpu; }

  void set_peer_access(int, int, bool) override { throw Error(ErrorKind::unavailable, no_gpu); }

  std::optional<std::string> why_not_allocatable(Place place, Allocation allocation) const override {
    if (place.is_gpu()) return no_gpu;
    if (std::ranges::find(nodes_, place.index) == nodes_.end())
      return "this machine has no NUMA node " + std::to_string(place.index);
    return why_not_host_allocation(allocation);
  }

  Memory allocate(Place place, Bytes bytes, Allocation allocation) override {
    check(place, allocation);
    return Memory(allocate_host(place, bytes, allocation, nodes_.size() > 1));
  }

  MemoryHandle export_memory(const Memory& memory) override { return export_host(memory); }
  Memory open_memory_for(const MemoryHandle& handle, Place /*user*/) override { return Memory(open_host(handle)); }

  std::unique_ptr<Stream> open_stream(Place place) override {
    check(place, Allocation::pageable);
    return std::make_unique<HostStream>(place);
  }

  std::unique_ptr<Event> create_event(Place place) override {
    check(place, Allocation::pageable);
    return std::make_unique<HostEvent>();
  }

  std::string state() const override {
    return Json{{"backend", "host"}, {"numa_nodes", nodes_}, {"numa_binding", why_no_binding().value_or("available")}}
        .dump();
  }

 private:
  void check(Place place, Allocation allocation) const {
    if (const auto why = why_not_allocatable(place, allocation))
      throw Error(ErrorKind::unavailable, text(place) + ": " + *why);
  }

  std::vector<int> nodes_ = numa_nodes();
};

}  // namespace

std::unique_ptr<Platform> open_host_platform() { return std::make_unique<HostPlatform>(); }

}  // namespace waywiser
