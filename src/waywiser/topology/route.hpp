#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/topology/graph.hpp"

namespace waywiser {

// The hops between two devices and what the slowest of them allows, per direction.
struct Route {
  std::vector<Hop> hops;
  std::optional<BytesPerSecond> limit;       // nothing: no hop has a known rate
  std::string limit_source;                  // which hop, and where its number comes from
  std::optional<BytesPerSecond> achievable;  // of the hop that is slowest in practice
};

// Between two memories (or a memory and a NIC). NVLink is taken where there is one, otherwise the fewest hops;
// Links::no_gpu_fabric gives the way through the host where NVLink exists too. Within one memory there are no hops; a
// copy reads and writes it, so the limit is half of its bandwidth. Throws invalid_input when a device does not exist or
// when nothing connects the two.
Route route(const Graph& graph, std::string_view a, std::string_view b, Links links = Links::all);
Route route(const Topology& topology, std::string_view a, std::string_view b, Links links = Links::all);

// Nothing when GPU a can read and write GPU b's memory directly. What a machine recorded (attribute "peer:gpu1" of
// gpu0: "ok" or a reason) goes before the rule: over NVLink yes, under one root complex yes, else no.
std::optional<std::string> why_no_peer_access(const Topology& topology, std::string_view a, std::string_view b);

// False for a network card that only carries TCP: one with the name of an interface where the machine was discovered,
// or one whose network is called "Ethernet". RoCE has another name, or the card that of an RDMA device.
bool has_rdma(const Topology& topology, std::string_view nic);

}  // namespace waywiser
