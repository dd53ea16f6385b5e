#include "waywiser/topology/topology.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "waywiser/topology/discover.hpp"
#include "waywiser/topology/pair_group.hpp"
#include "waywiser/topology/placement.hpp"
#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

void bind_values(nb::module_& m) {
  nb::class_<Device>(m, "Device", "A part of a machine; see the fields of the topology file.")
      .def_ro("id", &Device::id)
      .def_ro("kind", &Device::kind)
      .def_ro("name", &Device::name)
      .def_ro("bus_id", &Device::bus_id)
      .def_ro("numa", &Device::numa)
      .def_ro("cores", &Device::cores)
      .def_ro("memory_bytes", &Device::memory_bytes)
      .def_ro("attributes", &Device::attributes);
  nb::class_<Link>(m, "Link", "A connection of two devices; rates in bytes per second and direction, or None.")
      .def_ro("a", &Link::a)
      .def_ro("b", &Link::b)
      .def_ro("kind", &Link::kind)
      .def_ro("generation", &Link::generation)
      .def_ro("width", &Link::width)
      .def_ro("max_generation", &Link::max_generation)
      .def_ro("max_width", &Link::max_width)
      .def_ro("count", &Link::count)
      .def_ro("nominal", &Link::nominal)
      .def_ro("achievable", &Link::achievable)
      .def_ro("source", &Link::source)
      .def_prop_ro("trained_down", &Link::trained_down);
  nb::class_<Hop>(m, "Hop", "One link, walked from one device to another.")
      .def_ro("source", &Hop::from)
      .def_ro("destination", &Hop::to)
      .def_ro("link", &Hop::link);
  nb::class_<Route>(m, "Route", "Hops between two devices; `limit` is the slowest one's, in bytes per second, or None.")
      .def_ro("hops", &Route::hops)
      .def_ro("limit", &Route::limit)
      .def_ro("limit_source", &Route::limit_source)
      .def_ro("achievable", &Route::achievable);
  nb::class_<PairGroup>(m, "PairGroup", "Ordered pairs of places that the topology says are alike.")
      .def_ro("name", &PairGroup::name)
      .def_ro("members", &PairGroup::members);
}

void bind_placement(nb::module_& m) {
  nb::class_<PlacedGpu>(m, "PlacedGpu", "A chosen GPU with its cores and its NIC.")
      .def_ro("gpu", &PlacedGpu::gpu)
      .def_ro("index", &PlacedGpu::index)
      .def_ro("numa", &PlacedGpu::numa)
      .def_ro("cores", &PlacedGpu::cores)
      .def_ro("nic", &PlacedGpu::nic)
      .def_ro("nic_relation", &PlacedGpu::nic_relation);
  nb::class_<OddPair>(m, "OddPair", "Two GPUs slower than pairs like them; rates in bytes per second.")
      .def_ro("a", &OddPair::a)
      .def_ro("b", &OddPair::b)
      .def_ro("rate", &OddPair::rate)
      .def_ro("typical", &OddPair::typical);
  nb::class_<Placement>(m, "Placement", "The best-connected GPUs, why, and how to ask for them.")
      .def_ro("gpus", &Placement::gpus)
      .def_ro("exact", &Placement::exact)
      .def_ro("pairs_without_nvlink", &Placement::pairs_without_nvlink)
      .def_ro("pairs_unknown", &Placement::pairs_unknown)
      .def_ro("odd", &Placement::odd)
      .def_ro("slowest_pair", &Placement::slowest_pair)
      .def_ro("all_pairs", &Placement::all_pairs)
      .def_ro("why", &Placement::why)
      .def_ro("cuda_visible_devices", &Placement::cuda_visible_devices)
      .def_ro("cores", &Placement::cores)
      .def_ro("gres_conf", &Placement::gres_conf);
}

Topology parse(const std::string& text, const std::string& what) {
  return topology_from_json(parse_json(text, what), what);
}

std::pair<std::vector<std::string>, std::vector<std::vector<std::string>>> words(const Topology& topology) {
  const Matrix all = matrix(topology);
  return {all.ids, all.words};
}

}  // namespace

void bind_topology(nb::module_& m) {
  bind_values(m);
  bind_placement(m);
  nb::class_<Topology>(m, "Topology", "What a machine consists of and how its parts are connected.")
      .def_static("from_json", &parse, "text"_a, "what"_a = "topology",
                  "Reads the file format \"waywiser.topology\"; raises Error (invalid input) with one line.")
      .def("to_json", [](const Topology& topology) { return to_json(topology).dump(1); })
      .def_ro("name", &Topology::name)
      .def_ro("kind", &Topology::kind)
      .def_ro("source", &Topology::source)
      .def_ro("notes", &Topology::notes)
      .def_ro("software", &Topology::software)
      .def_ro("devices", &Topology::devices)
      .def_ro("links", &Topology::links)
      .def_prop_ro("fingerprint", &fingerprint)
      .def("places", &places, "host0, ..., gpu0, ...")
      .def("ids", &Topology::ids, "kind"_a)
      .def("device", &Topology::at, "id"_a, nb::rv_policy::copy)
      .def(
          "relation",
          [](const Topology& topology, const std::string& a, const std::string& b) { return relation(topology, a, b); },
          "a"_a, "b"_a, "In the words of `nvidia-smi topo -m`.")
      .def("matrix", &words, "The ids of GPUs and NICs, and the relation of each to each.")
      .def(
          "route",
          [](const Topology& topology, const std::string& a, const std::string& b, bool gpu_fabric) {
            return route(topology, a, b, gpu_fabric ? Links::all : Links::no_gpu_fabric);
          },
          "a"_a, "b"_a, "gpu_fabric"_a = true)
      .def(
          "why_no_peer_access",
          [](const Topology& topology, const std::string& a, const std::string& b) {
            return why_no_peer_access(topology, a, b);
          },
          "a"_a, "b"_a, "None when GPU a can reach GPU b's memory directly, else the reason.")
      .def(
          "has_rdma", [](const Topology& topology, const std::string& nic) { return has_rdma(topology, nic); }, "nic"_a,
          "False for a network card that only carries TCP.")
      .def(
          "pair_classes",
          [](const Topology& topology, bool same_place) {
            return pair_groups(topology, same_place ? SamePlace::included : SamePlace::left_out);
          },
          "same_place"_a = false)
      .def("place", &place_gpus, "count"_a, "nics"_a = false, "measured"_a = MeasuredRates{},
           "`measured`: bytes per second from one GPU to another, {(\"gpu0\", \"gpu1\"): 4e11}.")
      .def(
          "gpu_links_known",
          [](const Topology& topology, const std::string& a, const std::string& b) {
            return Graph(topology).gpu_links_known(a, b);
          },
          "a"_a, "b"_a, "False where nothing tells which NVLinks or xGMI links join two GPUs.")
      .def("gres_conf", &gres_conf);
  m.def(
      "discover", [](const std::string& root) { return discover(root); }, "root"_a = "",
      "This machine, or the one whose /sys and /proc were copied below `root`.");
}
