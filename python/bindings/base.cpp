#include <nanobind/stl/string_view.h>

#include <exception>
#include <string>
#include <string_view>

#include "bindings/bindings.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json_bounds.hpp"
#include "waywiser/base/units.hpp"

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

}  // namespace

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
  m.def("tells_of_a_job", &waywiser::tells_of_a_job, nb::arg("name"),
        "Whether a launcher tells a rank with this variable of the environment which one it is of which job.");
}
