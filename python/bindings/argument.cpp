#include "bindings/argument.hpp"

#include "waywiser/base/error.hpp"

namespace nb = nanobind;

namespace waywiser {
namespace {

constexpr std::size_t longest_shown = 60;

std::string shown(nb::handle object) {
  const std::string words = nb::cast<std::string>(nb::repr(object));
  return words.size() > longest_shown || words.find('\n') != std::string::npos ? "one" : words;
}

}  // namespace

void refuse_argument(const char* name, nb::handle given, const char* expected) {
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  const std::string type = nb::cast<std::string>(given.type().attr("__name__"));
  if (PyLong_CheckExact(given.ptr()) != 0 && std::string(expected) == Expected<int>::words)
    throw Error(ErrorKind::invalid_input, std::string(name) + " is out of range: " + shown(given));
  const std::string line = std::string(name) + " is " + expected + ", not " + shown(given) + " of type " + type;
  const nb::object kind = nb::module_::import_("waywiser.errors").attr("InputTypeError");
  PyErr_SetString(kind.ptr(), line.c_str());
  throw nb::python_error();
}

}  // namespace waywiser
