#include "waywiser/path/enumerate.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "waywiser/path/third_gpu.hpp"

namespace waywiser {
namespace {

using Values = std::vector<std::string>;
using Fixed = std::map<std::string, std::string>;

constexpr std::size_t most_relays = 2;
constexpr int most_threads = 64;

const Values chunks{"256K", "1M", "2M", "4M", "8M", "16M"};
const Values relay_chunks{"256K", "1M", "4M"};
const Values depths{"2", "4"};

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The kernel's "0-3,8": how many there are.
int count_list(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    const std::size_t dash = part.find('-');
    count += dash == std::string_view::npos ? 1 : number(part.substr(dash + 1)) - number(part) + 1;
    list.remove_prefix(std::min(part.size() + 1, list.size()));
  }
  return count;
}

int cores_of(const Topology& topology) {
  int cores = 0;
  for (const Device& device : topology.devices)
    if (device.kind == "host") cores += count_list(device.cores);
  return std::clamp(cores, 1, most_threads);
}

// 1, 2, 4, ... and `most` itself.
Values powers_up_to(int most) {
  Values values;
  for (int value = 1; value < most; value *= 2) values.push_back(std::to_string(value));
  values.push_back(std::to_string(most));
  return values;
}

constexpr const char* multiprocessors_key = "multiprocessors";
constexpr int multiprocessors_of_h100 = 132;

int multiprocessors(const Topology& topology, Place place) {
  const Device* device = topology.find(text(place));
  if (device == nullptr) return multiprocessors_of_h100;
  const auto found = device->attributes.find(multiprocessors_key);
  return found == device->attributes.end() ? multiprocessors_of_h100 : std::clamp(number(found->second), 1, 1024);
}

class Enumeration {
 public:
  Enumeration(const Topology& topology, Place source, Place destination, int processes)
      : topology_(topology), graph_(topology), base_{"", source, destination, processes, {}} {}

  std::vector<Family> all() {
    if (!base_.source.is_gpu() && !base_.destination.is_gpu()) {
      between_hosts();
    } else if (base_.source.is_gpu() && base_.destination.is_gpu()) {
      between_gpus();
    } else {
      between_host_and_gpu();
    }
    if (base_.processes == 2) ucx();
    return std::move(families_);
  }

 private:
  bool local() const { return base_.source == base_.destination && base_.processes == 1; }

  // How the destination's memory can be opened by another process; one empty value where there is no question.
  std::vector<Fixed> handles() const {
    if (base_.processes == 1 || !base_.destination.is_gpu()) return {{}};
    return {{{"handle", "cuda_ipc"}}, {{"handle", "descriptor"}}};
  }

  void add(const std::string& mechanism, Fixed fixed, std::vector<Parameter> grid = {}) {
    Path path = base_;
    path.mechanism = mechanism;
    path.parameters = std::move(fixed);
    families_.push_back({std::move(path), std::move(grid)});
  }

  // The kind of handle makes a difference to how a copy runs, not to what lies between two copies: one kind will do.
  void add_shared(const std::string& mechanism, Fixed fixed, std::vector<Parameter> grid = {}) {
    fixed.merge(Fixed(handles().front()));
    add(mechanism, std::move(fixed), std::move(grid));
  }

  // One of two processes copies while the other waits on a core of its own: with more threads than remaining cores, the
  // time depends on the scheduler.
  void between_hosts() {
    const int free_cores = std::max(1, cores_of(topology_) - (base_.processes - 1));
    for (const char* stores : {"temporal", "nontemporal"})
      add("host_copy", {{"stores", stores}}, {{"threads", powers_up_to(free_cores)}});
  }

  void copy_engine() {
    for (const Fixed& handle : handles()) add("copy_engine", handle);
  }

  void sm_copy(const std::string& direction) {
    const Place worker = direction == "push" ? base_.source : base_.destination;
    for (Fixed fixed : handles()) {
      fixed["direction"] = direction;
      add("sm_copy", fixed, {{"blocks", powers_up_to(multiprocessors(topology_, worker))}});
    }
  }

  void between_host_and_gpu() {
    copy_engine();
    sm_copy(base_.source.is_gpu() ? "push" : "pull");
    add("courier", {});
    add("bar_copy", {});
    add_shared("host_staged", {{"variant", "pageable"}});
  }

  void between_gpus() {
    copy_engine();
    sm_copy("push");
    if (local()) return;
    sm_copy("pull");
    if (base_.processes == 2) add_shared("copy_engine", {{"direction", "pull"}});
    add_shared("host_staged", {{"variant", "pageable"}});
    add_shared("host_staged", {{"variant", "whole"}});
    add_shared("host_staged", {{"variant", "pipelined"}}, {{"chunk", chunks}, {"depth", depths}});
    if (base_.source == base_.destination) return;
    const std::vector<Place> third = third_gpus(graph_, base_.source, base_.destination);
    for (std::size_t i = 0; i < std::min(third.size(), most_relays); ++i)
      add_shared("relay", {{"via", text(third[i])}}, {{"chunk", relay_chunks}, {"depth", depths}});
    splits(third);
  }

  // Only ways that do not share their slowest link can add their bandwidths up.
  void splits(const std::vector<Place>& third) {
    add_shared("split",
               {{"ways", "copy_engine+host_staged"}, {"2.variant", "pipelined"}, {"2.chunk", "1M"}, {"2.depth", "3"}},
               {{"share", {"60+40", "75+25", "90+10"}}});
    std::vector<Place> own;
    for (const Place via : third)
      if (own_nvlink(graph_, base_.source, via) && own_nvlink(graph_, via, base_.destination)) own.push_back(via);
    const bool direct = own_nvlink(graph_, base_.source, base_.destination);
    if (direct && !own.empty())
      add_shared("split", {{"ways", "copy_engine+relay"}, {"2.via", text(own[0])}, {"2.chunk", "1M"}, {"2.depth", "3"}},
                 {{"share", {"50+50", "60+40", "75+25"}}});
    if (!direct && own.size() > 1)
      add_shared("split",
                 {{"ways", "relay+relay"},
                  {"1.via", text(own[0])},
                  {"1.chunk", "1M"},
                  {"1.depth", "3"},
                  {"2.via", text(own[1])},
                  {"2.chunk", "1M"},
                  {"2.depth", "3"}},
                 {{"share", {"50+50"}}});
  }

  void ucx() {
    Values transports{"posix", "sysv", "cma", "tcp"};
    if (base_.source.is_gpu() || base_.destination.is_gpu()) transports = {"cuda_copy"};
    if (base_.source.is_gpu() && base_.destination.is_gpu()) transports = {"cuda_ipc", "cuda_copy"};
    for (const std::string& transport : transports) add("ucx", {{"transports", transport}});
  }

  const Topology& topology_;
  Graph graph_;
  Path base_;
  std::vector<Family> families_;
};

}  // namespace

std::vector<Family> families(const Topology& topology, Place source, Place destination, int processes) {
  return Enumeration(topology, source, destination, processes).all();
}

void set_multiprocessors(Topology& topology, Place gpu, int number) {
  const std::string name = text(gpu);
  for (Device& device : topology.devices)
    if (device.id == name) device.attributes[multiprocessors_key] = std::to_string(number);
}

std::vector<Path> expand(const Family& family) {
  std::vector<Path> paths{family.base};
  for (const Parameter& parameter : family.grid) {
    std::vector<Path> wider;
    for (const Path& path : paths)
      for (const std::string& value : parameter.values) wider.emplace_back(path).parameters[parameter.name] = value;
    paths = std::move(wider);
  }
  return paths;
}

}  // namespace waywiser
