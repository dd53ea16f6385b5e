#include "waywiser/topology/graph.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

bool forwards(const Device& device) {
  return device.kind == "cpu" || device.kind == "root" || device.kind == "switch" || device.kind == "bridge" ||
         device.kind == "nvswitch";
}

bool in_gpu_fabric(const Device& device) { return device.kind == "gpu" || device.kind == "nvswitch"; }

}  // namespace

Graph::Graph(const Topology& topology) : topology_(&topology), edges_(topology.devices.size()) {
  for (std::size_t i = 0; i < topology.devices.size(); ++i) index_.emplace(topology.devices[i].id, i);
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const std::size_t a = index(topology.links[i].a);
    const std::size_t b = index(topology.links[i].b);
    edges_[a].push_back({b, i});
    edges_[b].push_back({a, i});
  }
}

std::size_t Graph::index(std::string_view id) const {
  const auto found = index_.find(id);
  if (found != index_.end()) return found->second;
  throw Error(ErrorKind::invalid_input, "machine " + topology_->name + " has no device " + quoted(id, 64));
}

bool Graph::walkable(const Link& link, Links links) const {
  if (links == Links::all) return true;
  const bool fabric = (link.kind == "nvlink" || link.kind == "xgmi") &&
                      in_gpu_fabric(topology_->devices[index(link.a)]) &&
                      in_gpu_fabric(topology_->devices[index(link.b)]);
  return fabric == (links == Links::gpu_fabric);
}

std::vector<Hop> Graph::walk(std::string_view a, std::string_view b, Links links) const {
  const std::size_t start = index(a);
  const std::size_t goal = index(b);
  std::vector<Edge> came_by(edges_.size(), {nowhere, nowhere});  // .to is where we came from
  std::deque<std::size_t> frontier{start};
  while (!frontier.empty() && came_by[goal].to == nowhere && start != goal) {
    const std::size_t here = frontier.front();
    frontier.pop_front();
    if (here != start && !forwards(topology_->devices[here])) continue;
    for (const Edge& edge : edges_[here]) {
      if (edge.to == start || came_by[edge.to].to != nowhere) continue;
      if (!walkable(topology_->links[edge.link], links)) continue;
      came_by[edge.to] = {here, edge.link};
      frontier.push_back(edge.to);
    }
  }
  std::vector<Hop> hops;
  if (came_by[goal].to == nowhere) return hops;
  for (std::size_t here = goal; here != start; here = came_by[here].to)
    hops.push_back(
        {topology_->devices[came_by[here].to].id, topology_->devices[here].id, topology_->links[came_by[here].link]});
  std::ranges::reverse(hops);
  return hops;
}

GpuLinks Graph::gpu_links(std::string_view a, std::string_view b) const {
  GpuLinks direct;
  for (const Edge& edge : edges_[index(a)]) {
    const Link& link = topology_->links[edge.link];
    if (edge.to != index(b) || !walkable(link, Links::gpu_fabric)) continue;
    direct.count += link.count;
    direct.kind = link.kind;
  }
  if (direct.count != 0) return direct;
  const std::vector<Hop> hops = walk(a, b, Links::gpu_fabric);
  if (hops.empty()) return {};
  return {hops.front().link.kind, std::min(hops.front().link.count, hops.back().link.count)};
}

bool Graph::gpu_links_known(std::string_view a, std::string_view b) const {
  const auto open = [&](std::string_view id) {
    const Device& device = topology_->devices[index(id)];
    const auto found = device.attributes.find("gpu_links");
    return found != device.attributes.end() && found->second == "unknown";
  };
  return (!open(a) && !open(b)) || gpu_links(a, b).count > 0;
}

}  // namespace waywiser
