#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/c/handles.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/connect.hpp"

using namespace waywiser;

namespace {

// Memory of the host.
Region host_bytes(const void* data, std::size_t bytes) {
  auto* address = static_cast<std::byte*>(const_cast<void*>(data));
  if (bytes != 0) given(address, "the array");
  return {address, bytes, host(0)};
}

ArrayHead row_of(std::size_t count, ww_type type) {
  const ArrayHead head{data_type(type), false, {count}};
  check(head);
  return head;
}

KernelArgument kernel_argument(const ww_remote_argument& argument) {
  const void* value = &given(static_cast<const std::byte*>(argument.value), "the value of an argument");
  const auto number = [value]<typename T>(T made) {
    std::memcpy(&made, value, sizeof made);
    return made;
  };
  switch (argument.kind) {
    case WW_ARGUMENT_ARRAY: return KernelArgument::of_array(number(std::uint64_t{}));
    case WW_ARGUMENT_INT32: return KernelArgument::of(number(std::int32_t{}));
    case WW_ARGUMENT_INT64: return KernelArgument::of(number(std::int64_t{}));
    case WW_ARGUMENT_FLOAT32: return KernelArgument::of(number(float{}));
    case WW_ARGUMENT_FLOAT64: return KernelArgument::of(number(double{}));
  }
  throw Error(ErrorKind::invalid_input, "an argument of kind " + std::to_string(argument.kind));
}

LaunchShape shape_of(const ww_remote_shape& shape) {
  return {std::to_array(shape.grid), std::to_array(shape.block), shape.shared};
}

// Runs the call, then tells the number of what it has made.
template <typename Call>
int make_one(ww_remote* remote, std::uint64_t* number, Call call) noexcept {
  return guarded([&] {
    std::uint64_t& place = given(number, "the place for the number");
    place = call(given(remote, "the remote GPU").gpu);
  });
}

}  // namespace

int ww_remote_open(const char* address, const char* key, int gpu, double timeout, ww_remote** remote) {
  return guarded([&] {
    given(remote, "the place for the remote GPU");
    RemoteGpuOptions options;
    options.address = &given(address, "the address");
    if (key != nullptr) options.key = key;
    options.gpu = gpu;
    options.timeout = timeout;
    *remote = new ww_remote{.gpu = connect_remote_gpu(options)};
  });
}

void ww_remote_free(ww_remote* remote) { delete remote; }

int ww_remote_zeros(ww_remote* remote, size_t count, ww_type type, uint64_t* array) {
  return make_one(remote, array, [&](RemoteGpu& gpu) { return gpu.zeros(row_of(count, type)); });
}

int ww_remote_array(ww_remote* remote, const void* data, size_t count, ww_type type, uint64_t* array) {
  return make_one(remote, array, [&](RemoteGpu& gpu) {
    const ArrayHead head = row_of(count, type);
    return gpu.array(head, host_bytes(data, head.bytes()));
  });
}

int ww_remote_put(ww_remote* remote, uint64_t array, size_t offset, const void* data, size_t bytes) {
  return guarded([&] { given(remote, "the remote GPU").gpu.put(array, offset, host_bytes(data, bytes)); });
}

int ww_remote_get(ww_remote* remote, uint64_t array, void* data, size_t count, ww_type type) {
  return guarded([&] {
    const ArrayHead head = row_of(count, type);
    given(remote, "the remote GPU").gpu.get(array, {host_bytes(data, head.bytes()), head.type});
  });
}

int ww_remote_pinned(ww_remote* remote, size_t bytes, void** data) {
  return guarded([&] {
    void*& place = given(data, "the place for the memory");
    ww_remote& made = given(remote, "the remote GPU");
    const PinnedMemory memory = made.gpu.pinned(bytes);
    place = memory.region().data;
    const std::lock_guard lock(made.mutex);
    made.pinned.emplace(place, memory);
  });
}

int ww_remote_unpin(ww_remote* remote, void* data) {
  return guarded([&] {
    ww_remote& made = given(remote, "the remote GPU");
    const std::lock_guard lock(made.mutex);
    if (made.pinned.erase(data) == 0)
      throw Error(ErrorKind::invalid_input, "no memory of ww_remote_pinned begins there");
  });
}

const char* ww_remote_pinned_by(const ww_remote* remote, const void* data) {
  return remote == nullptr ? "" : remote->gpu.pinned_by(data).data();  // a literal
}

int ww_remote_release(ww_remote* remote, uint64_t array) {
  return guarded([&] { given(remote, "the remote GPU").gpu.free(array); });
}

int ww_remote_run(ww_remote* remote, const char* function, const uint64_t* arrays, size_t count,
                  const ww_remote_number* numbers, size_t number_count, uint64_t* result) {
  return make_one(remote, result, [&](RemoteGpu& gpu) {
    if (count != 0) given(arrays, "the list of arrays");
    if (number_count != 0) given(numbers, "the list of numbers");
    std::vector<RemoteNumber> named;
    for (std::size_t i = 0; i < number_count; ++i)
      named.emplace_back(&given(numbers[i].name, "the name of a number"), numbers[i].value);
    return gpu.run(&given(function, "the function"), {arrays, count}, named);
  });
}

int ww_remote_load_kernels(ww_remote* remote, const void* code, size_t bytes, uint64_t* kernels) {
  return make_one(remote, kernels, [&](RemoteGpu& gpu) {
    const Region given_code = host_bytes(code, bytes);
    return gpu.load_kernels({reinterpret_cast<const char*>(given_code.data), bytes});
  });
}

int ww_remote_launch(ww_remote* remote, uint64_t kernels, const char* kernel, const ww_remote_shape* shape,
                     const ww_remote_argument* arguments, size_t count) {
  return guarded([&] {
    std::vector<KernelArgument> taken;
    if (count != 0) given(arguments, "the list of arguments");
    for (std::size_t i = 0; i < count; ++i) taken.push_back(kernel_argument(arguments[i]));
    given(remote, "the remote GPU")
        .gpu.launch(kernels, &given(kernel, "the kernel"), shape_of(given(shape, "the shape")), taken);
  });
}

int ww_remote_copy_of(ww_remote* remote, ww_remote* other, uint64_t array, uint64_t* copy) {
  return make_one(remote, copy,
                  [&](RemoteGpu& gpu) { return gpu.copy_of(given(other, "the other remote GPU").gpu, array); });
}

int ww_remote_stream(ww_remote* remote, uint64_t* stream) {
  return make_one(remote, stream, [](RemoteGpu& gpu) { return gpu.new_stream(); });
}

int ww_remote_use_stream(ww_remote* remote, uint64_t stream) {
  return guarded([&] { given(remote, "the remote GPU").gpu.use_stream(stream); });
}

int ww_remote_event(ww_remote* remote, uint64_t* event) {
  return make_one(remote, event, [](RemoteGpu& gpu) { return gpu.new_event(); });
}

int ww_remote_record(ww_remote* remote, uint64_t event) {
  return guarded([&] { given(remote, "the remote GPU").gpu.record(event); });
}

int ww_remote_wait(ww_remote* remote, uint64_t event) {
  return guarded([&] { given(remote, "the remote GPU").gpu.wait(event); });
}

int ww_remote_await(ww_remote* remote, uint64_t event) {
  return guarded([&] { given(remote, "the remote GPU").gpu.await(event); });
}

int ww_remote_since(ww_remote* remote, uint64_t later, uint64_t earlier, double* seconds) {
  return guarded([&] {
    double& place = given(seconds, "the place for the seconds");
    place = given(remote, "the remote GPU").gpu.since(later, earlier);
  });
}

int ww_remote_use_plain_data(ww_remote* remote) {
  return guarded([&] { given(remote, "the remote GPU").gpu.use_plain_data(); });
}

int ww_remote_flush(ww_remote* remote) {
  return guarded([&] { given(remote, "the remote GPU").gpu.flush(); });
}

int ww_remote_synchronize(ww_remote* remote) {
  return guarded([&] { given(remote, "the remote GPU").gpu.synchronize(); });
}
