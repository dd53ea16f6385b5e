// The module waywiser_torch, which waywiser/torch_backend/compiled.py compiles against the installed PyTorch.
#include "backend.hpp"

namespace wtb = waywiser::torch_backend;
namespace py = pybind11;

namespace {

c10::intrusive_ptr<c10d::Backend> make_backend(py::object python, py::capsule group,
                                               std::shared_ptr<wtb::CallLock> lock, int rank, int size) {
  const auto* calls = static_cast<const wtb::CoreCalls*>(PyCapsule_GetPointer(group.ptr(), wtb::core_calls_name));
  if (calls == nullptr) throw py::error_already_set();
  auto core = std::make_shared<const wtb::Core>(*calls, std::move(lock));
  return c10::make_intrusive<wtb::GroupBackend>(std::move(python), std::move(group), std::move(core), rank, size);
}

}  // namespace

PYBIND11_MODULE(waywiser_torch, m) {
  m.attr("core_calls") = wtb::core_calls_name;
  py::class_<wtb::CallLock, std::shared_ptr<wtb::CallLock>>(m, "CallLock")
      .def(py::init<>())
      .def("__enter__", &wtb::CallLock::lock)
      .def("__exit__", [](wtb::CallLock& lock, const py::args&) { lock.unlock(); });
  m.def("make_backend", make_backend);
}
