#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json_bounds.hpp"
#include "waywiser/base/launchers.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/transport/ucx/libucp_choice.hpp"

namespace nb = nanobind;

namespace {

// Raises the class that waywiser.errors has for the kind; `payload` is its table, which the module keeps alive.
void raise_error(const std::exception_ptr& thrown, void* payload) {
  try {
    std::rethrow_exception(thrown);
  } catch (const waywiser::Error& error) {
    // A message may quote a part of a file, and cut a character of it in two.
    const std::string_view text(error.what());
    const nb::object words =
        nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    const std::string kind(waywiser::name(error.kind()));
    const nb::object type = nb::handle(static_cast<PyObject*>(payload))[kind.c_str()];
    PyErr_SetObject(type.ptr(), words.ptr());
  }
}

waywiser::Started who_started_with(const std::optional<std::map<std::string, std::string>>& variables) {
  if (!variables) return waywiser::who_started();
  const auto look_up = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables->find(std::string(name));
    return found == variables->end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  };
  return waywiser::who_started(look_up, {});
}

using Names = std::vector<std::string>;

// The name of each launcher, and its variables by what they tell.
std::vector<std::pair<std::string, std::vector<Names>>> table_of_launchers() {
  std::vector<std::pair<std::string, std::vector<Names>>> table;
  for (const waywiser::Launcher& row : waywiser::launchers()) {
    std::vector<Names> cells{{std::string(row.rank)}, {std::string(row.size)}};
    for (const auto& names : {row.needed, row.local_rank, row.local_size, row.machines, row.job})
      cells.emplace_back(names.begin(), names.end());
    table.emplace_back(row.name, std::move(cells));
  }
  return table;
}

void bind_launchers(nb::module_& m) {
  using waywiser::Started;
  nb::class_<Started>(m, "Started", "Who started a process, and as what.")
      .def_ro("launcher", &Started::launcher)
      .def_ro("rank", &Started::rank)
      .def_ro("size", &Started::size)
      .def_ro("local_rank", &Started::local_rank)
      .def_ro("local_size", &Started::local_size)
      .def_ro("machines", &Started::machines)
      .def_ro("job", &Started::job)
      .def_ro("claim", &Started::claim);
  m.def("who_started", who_started_with, nb::arg("variables") = nb::none(),
        "Who started this process, or one of which only these variables are known. Raises Error if they contradict "
        "each other.");
  m.def("launchers", table_of_launchers,
        "Each launcher and its variables: rank, size, others that must be set, rank and ranks on this machine, "
        "machines, name of the job.");
  m.def(
      "find_libucp",
      [] {
        const waywiser::LibucpChoice choice = waywiser::choose_libucp(waywiser::libucp_places());
        return std::pair(choice.path, choice.origin);
      },
      "The path of the libucp.so.0 that this process opens, or has opened, and where it was found.");
  m.def("tells_of_a_job", &waywiser::tells_of_a_job, nb::arg("name"),
        "Whether a launcher tells a rank with this variable of the environment which one it is of which job.");
}

}  // namespace

void waywiser::raise_in_python(const std::exception_ptr& thrown) {
  try {
    raise_error(thrown, nb::module_::import_("waywiser._core").attr("_error_by_kind").ptr());
  } catch (const std::exception& error) {  // none of ours
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void bind_base(nb::module_& m) {
  const nb::module_ errors = nb::module_::import_("waywiser.errors");
  const nb::object by_kind = errors.attr("BY_KIND");
  m.attr("Error") = errors.attr("Error");
  m.attr("_error_by_kind") = by_kind;
  nb::register_exception_translator(raise_error, by_kind.ptr());
  m.def(
      "check_json_bounds",
      [](const nb::bytes& text, std::string_view what) {
        waywiser::check_json_bounds({text.c_str(), text.size()}, what);
      },
      nb::arg("text"), nb::arg("what"), "Raises Error for a text that takes too long or too much memory to parse.");
  bind_launchers(m);
}
