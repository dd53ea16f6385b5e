#include "bindings/arrow_device.hpp"

#include <nanobind/stl/vector.h>

#include <cerrno>
#include <utility>

#include "bindings/group_call.hpp"
#include "waywiser/device/current_gpu.hpp"
#include "waywiser/device/foreign_event.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

constexpr const char *array_name = "arrow_device_array", *stream_name = "arrow_device_array_stream";

bool is_cuda(const Platform& platform) { return platform.backend() == "cuda"; }

// As Arrow counts it: CUDA's ordinal.
std::int64_t device_of(const Platform& platform, Place gpu) {
  return is_cuda(platform) ? cuda_ordinal_of(gpu.index) : gpu.index;
}

ArrowDeviceArray on_device(const Platform& platform, Place gpu, Batch batch) {
  return {batch.move_out(), device_of(platform, gpu), ARROW_DEVICE_CUDA, nullptr, {}};
}

// What a stream of ours holds.
struct StreamOwner {
  std::shared_ptr<Platform> platform;
  Place gpu;
  std::vector<Batch> batches;
  std::size_t next = 0;
  nb::object schema;
};

StreamOwner& owner_of(ArrowDeviceArrayStream* stream) { return *static_cast<StreamOwner*>(stream->private_data); }

int give_schema(ArrowDeviceArrayStream* stream, ArrowSchema* out) {
  const nb::gil_scoped_acquire acquired;
  const nb::object capsule = owner_of(stream).schema.attr("__arrow_c_schema__")();
  auto& schema = in_capsule<ArrowSchema>(capsule, "arrow_schema");
  *out = schema;
  schema.release = nullptr;
  return 0;
}

int give_next(ArrowDeviceArrayStream* stream, ArrowDeviceArray* out) {
  StreamOwner& owner = owner_of(stream);
  *out = {};
  if (owner.next < owner.batches.size())
    *out = on_device(*owner.platform, owner.gpu, std::move(owner.batches[owner.next++]));
  return 0;
}

void release_stream(ArrowDeviceArrayStream* stream) {
  const nb::gil_scoped_acquire acquired;
  delete &owner_of(stream);
  stream->release = nullptr;
}

}  // namespace

Batch batch_of_device(const Platform& platform, Place gpu, nb::handle capsule, Seconds timeout) {
  auto& given = in_capsule<ArrowDeviceArray>(capsule, array_name);
  const std::int64_t device = device_of(platform, gpu);
  const bool is_of_cuda = given.device_type == ARROW_DEVICE_CUDA || given.device_type == ARROW_DEVICE_CUDA_MANAGED;
  if (!is_of_cuda || given.device_id != device)
    throw Error(ErrorKind::invalid_input, "rows in the memory of device " + std::to_string(given.device_id) +
                                              " of type " + std::to_string(given.device_type) + " in Arrow, not of " +
                                              text(gpu) + ", device " + std::to_string(device) + " of type 2");
  if (given.array.release == nullptr) throw Error(ErrorKind::invalid_input, "rows that another call has taken");
  if (given.sync_event != nullptr) without_gil([&] { await_foreign_event(given.sync_event, Deadline::in(timeout)); });
  return Batch(given.array);
}

std::vector<std::int64_t> DeviceRows::rows() const {
  std::vector<std::int64_t> all;
  for (const Batch& each : batches_) all.push_back(each.rows());
  return all;
}

nb::object DeviceRows::array(std::size_t number) {
  Batch& batch = batches_.at(number);
  if (batch.array().release == nullptr) throw Error(ErrorKind::invalid_input, "these rows are taken already");
  return capsule_of(on_device(*platform_, gpu_, std::move(batch)), array_name);
}

nb::object DeviceRows::stream(nb::object schema) {
  std::vector<Batch> left;
  for (Batch& each : batches_)
    if (each.array().release != nullptr) left.push_back(std::move(each));
  auto owner = std::make_unique<StreamOwner>(StreamOwner{platform_, gpu_, std::move(left), 0, std::move(schema)});
  const auto no_words = [](ArrowDeviceArrayStream*) -> const char* { return nullptr; };
  return capsule_of(
      ArrowDeviceArrayStream{ARROW_DEVICE_CUDA, give_schema, give_next, no_words, release_stream, owner.release()},
      stream_name);
}

nb::list batches_of_stream(nb::handle capsule) {
  auto& stream = in_capsule<ArrowDeviceArrayStream>(capsule, stream_name);
  if (stream.release == nullptr) throw Error(ErrorKind::invalid_input, "rows that another call has taken");
  nb::list all;
  for (;;) {
    ArrowDeviceArray next{};
    if (const int code = stream.get_next(&stream, &next); code != 0) {
      const char* why = stream.get_last_error(&stream);
      throw Error(ErrorKind::device,
                  "a stream of tables: " + (why != nullptr ? std::string(why) : std::to_string(code)));
    }
    if (next.array.release == nullptr) return all;
    all.append(capsule_of(next, array_name));
  }
}

void bind_arrow_device(nb::module_& m) {
  m.def("batches_of_stream", batches_of_stream, "stream"_a);
  nb::class_<DeviceRows>(m, "DeviceRows", "See waywiser.table.DeviceRows.")
      .def("rows", &DeviceRows::rows)
      .def("array", &DeviceRows::array, "number"_a)
      .def("stream", &DeviceRows::stream, "schema"_a);
}

}  // namespace waywiser
