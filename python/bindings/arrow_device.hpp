#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/device/place.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/table/arrow_device_interface.h"
#include "waywiser/table/batch.hpp"

namespace waywiser {

// What a capsule of Arrow's points to. Throws invalid_input for another object.
template <typename T>
T& in_capsule(nanobind::handle capsule, const char* name) {
  if (PyCapsule_IsValid(capsule.ptr(), name) == 0)
    throw Error(ErrorKind::invalid_input, std::string("a capsule ") + name + " of Arrow was expected");
  return *static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
}

inline void let_go(ArrowArray& array) {
  if (array.release != nullptr) array.release(&array);
}
inline void let_go(ArrowDeviceArray& array) { let_go(array.array); }
inline void let_go(ArrowDeviceArrayStream& stream) {
  if (stream.release != nullptr) stream.release(&stream);
}

// As Arrow wants it: what no consumer has moved out goes with the capsule.
template <typename T>
nanobind::object capsule_of(T given, const char* name) {
  auto owner = std::make_unique<T>(given);
  const auto free = [](PyObject* capsule) {
    auto* it = static_cast<T*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    let_go(*it);
    delete it;
  };
  nanobind::object capsule = nanobind::steal(PyCapsule_New(owner.get(), name, free));
  if (!capsule.is_valid()) throw nanobind::python_error();
  static_cast<void>(owner.release());
  return capsule;
}

// Moves a batch of rows on this GPU out of its capsule, when what its library has enqueued on it is complete. Throws
// invalid_input for memory of another device; timeout.
Batch batch_of_device(const Platform& platform, Place gpu, nanobind::handle capsule, Seconds timeout);

// Batches that have come to a GPU, by Arrow's C device interface. Each is taken once.
class DeviceRows {
 public:
  DeviceRows(const std::shared_ptr<Platform>& platform, Place gpu, std::vector<Batch> batches)
      : platform_(platform), gpu_(gpu), batches_(std::move(batches)) {}
  DeviceRows(DeviceRows&&) = default;

  std::vector<std::int64_t> rows() const;
  nanobind::object array(std::size_t number);
  // Of those that were not taken. `schema`: of pyarrow.
  nanobind::object stream(nanobind::object schema);

 private:
  std::shared_ptr<Platform> platform_;
  Place gpu_;
  std::vector<Batch> batches_;
};

// Capsules of all batches of such a stream, with the GIL. Throws device with the stream's own words.
nanobind::list batches_of_stream(nanobind::handle capsule);

void bind_arrow_device(nanobind::module_& m);

}  // namespace waywiser
