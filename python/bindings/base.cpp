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

// Raises waywiser._core.Error with the kind in words; `payload` is that Python type, which the module keeps alive.
void raise_error(const std::exception_ptr& thrown, void* payload) {
  try {
    std::rethrow_exception(thrown);
  } catch (const waywiser::Error& error) {
    const nb::handle type(static_cast<PyObject*>(payload));
    // A message may quote a part of a file, and cut a character of it in two.
    const std::string_view text(error.what());
    const nb::object words =
        nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    const nb::object raised = type(words);
    const std::string kind(waywiser::name(error.kind()));
    raised.attr("kind") = nb::str(kind.c_str());
    PyErr_SetObject(type.ptr(), raised.ptr());
  }
}

}  // namespace

void bind_base(nb::module_& m) {
  const nb::object type = nb::steal(
      PyErr_NewExceptionWithDoc("waywiser._core.Error", "A failure of the core; `kind` is the name of its ErrorKind.",
                                PyExc_RuntimeError, nullptr));
  type.attr("kind") = nb::str("");
  m.attr("Error") = type;
  nb::register_exception_translator(raise_error, type.ptr());
  m.def(
      "check_json_bounds",
      [](const nb::bytes& text, std::string_view what) {
        waywiser::check_json_bounds({text.c_str(), text.size()}, what);
      },
      nb::arg("text"), nb::arg("what"), "Raises Error for a text that takes too long or too much memory to parse.");
  m.def("tells_of_a_job", &waywiser::tells_of_a_job, nb::arg("name"),
        "Whether a launcher tells a rank with this variable of the environment which one it is of which job.");
}
