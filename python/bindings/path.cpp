#include "waywiser/path/path.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "waywiser/path/enumerate.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

void bind_path(nb::module_& m) {
  m.def(
      "path_label",
      [](const std::string& path_json) { return label(path_from_json(parse_json(path_json, "path"), "path")); },
      "path_json"_a, "Mechanism and parameters of a path as one line, without the pair.");
  m.def(
      "paths",
      [](const Topology& topology, const std::string& source, const std::string& destination, int processes) {
        Json list = Json::array();
        for (const Family& family : families(topology, parse_place(source), parse_place(destination), processes))
          for (const Path& path : expand(family)) list.push_back(to_json(path));
        return list.dump();
      },
      "topology"_a, "source"_a, "destination"_a, "processes"_a = 1,
      "Every candidate path between two places, as a JSON list; whether this machine can use it is asked later.");
}
