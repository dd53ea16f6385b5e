#include "bindings/group_call.hpp"

#include <mutex>
#include <vector>

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

namespace {

std::mutex left_objects_lock;
std::vector<PyObject*> left_objects;

void leave(PyObject* object) noexcept {
  {
    const std::lock_guard lock(left_objects_lock);
    left_objects.push_back(object);
  }
  if (Py_IsInitialized() == 0) return;
  const auto later = [](void*) {
    let_go_of_objects();
    return 0;
  };
  static_cast<void>(Py_AddPendingCall(later, nullptr));
}

}  // namespace

std::shared_ptr<void> kept(nb::object object) {
  return {object.release().ptr(), [](void* it) { leave(static_cast<PyObject*>(it)); }};
}

// An object that goes may make others go.
void let_go_of_objects() {
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(left_objects_lock);
    if (left_objects.empty()) return;
    objects.swap(left_objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

ConstElements input(const Group& group, nb::handle array, bool* of_bools) {
  return input_elements(array, [&group] { return group.platform(); }, of_bools);
}

Elements output(const Group& group, nb::handle array) {
  return output_elements(array, [&group] { return group.platform(); });
}

ConstRegion input_bytes(const Group& group, nb::handle array) {
  return input_region(array, [&group] { return group.platform(); });
}

Region output_bytes(const Group& group, nb::handle array) {
  return output_region(array, [&group] { return group.platform(); });
}

StreamUse::StreamUse(const PlatformSource& platform, nb::handle stream, Place place) {
  if (stream.is_none() || !place.is_gpu()) return;
  GpuStream* ours = nullptr;
  if (nb::try_cast(stream, ours, false)) {
    stream_ = ours->stream.get();
    return;
  }
  borrowed_ = platform()->borrow_stream(place, nb::cast<std::uintptr_t>(stream));
  stream_ = borrowed_.get();
}

}  // namespace waywiser
