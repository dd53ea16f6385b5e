#include "bindings/group_call.hpp"

#include "bindings/array.hpp"
#include "bindings/gpus.hpp"

namespace nb = nanobind;

namespace waywiser {

bool interpreter_ends() {
  PyObject* ask = PySys_GetObject("is_finalizing");
  if (ask == nullptr) return true;
  const nb::object answer = nb::steal(PyObject_CallNoArgs(ask));
  if (!answer.is_valid()) PyErr_Clear();
  return !answer.is_valid() || PyObject_IsTrue(answer.ptr()) != 0;
}

ConstElements input(const Group& group, nb::handle array) {
  return input_elements(array, [&group] { return group.platform(); });
}

Elements output(const Group& group, nb::handle array) {
  return output_elements(array, [&group] { return group.platform(); });
}

StreamUse::StreamUse(const Group& group, nb::handle stream, Place place) {
  if (stream.is_none() || !place.is_gpu()) return;
  GpuStream* ours = nullptr;
  if (nb::try_cast(stream, ours, false)) {
    stream_ = ours->stream.get();
    return;
  }
  borrowed_ = group.platform()->borrow_stream(place, nb::cast<std::uintptr_t>(stream));
  stream_ = borrowed_.get();
}

}  // namespace waywiser
