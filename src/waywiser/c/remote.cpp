#include <string>
#include <utility>
#include <vector>

#include "waywiser/c/handles.hpp"
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

// Runs the call, then tells the number of the array that it has made.
template <typename Call>
int make_array(ww_remote* remote, std::uint64_t* array, Call call) noexcept {
  return guarded([&] {
    std::uint64_t& place = given(array, "the place for the array");
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
    *remote = new ww_remote{connect_remote_gpu(options)};
  });
}

void ww_remote_free(ww_remote* remote) { delete remote; }

int ww_remote_zeros(ww_remote* remote, size_t count, ww_type type, uint64_t* array) {
  return make_array(remote, array, [&](RemoteGpu& gpu) { return gpu.zeros(row_of(count, type)); });
}

int ww_remote_array(ww_remote* remote, const void* data, size_t count, ww_type type, uint64_t* array) {
  return make_array(remote, array, [&](RemoteGpu& gpu) {
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

int ww_remote_release(ww_remote* remote, uint64_t array) {
  return guarded([&] { given(remote, "the remote GPU").gpu.free(array); });
}

int ww_remote_run(ww_remote* remote, const char* function, const uint64_t* arrays, size_t count,
                  const ww_remote_number* numbers, size_t number_count, uint64_t* result) {
  return make_array(remote, result, [&](RemoteGpu& gpu) {
    if (count != 0) given(arrays, "the list of arrays");
    if (number_count != 0) given(numbers, "the list of numbers");
    std::vector<RemoteNumber> named;
    for (std::size_t i = 0; i < number_count; ++i)
      named.emplace_back(&given(numbers[i].name, "the name of a number"), numbers[i].value);
    return gpu.run(&given(function, "the function"), {arrays, count}, named);
  });
}

int ww_remote_flush(ww_remote* remote) {
  return guarded([&] { given(remote, "the remote GPU").gpu.flush(); });
}

int ww_remote_synchronize(ww_remote* remote) {
  return guarded([&] { given(remote, "the remote GPU").gpu.synchronize(); });
}
