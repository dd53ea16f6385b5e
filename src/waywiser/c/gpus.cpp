#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "waywiser/c/handles.hpp"
#include "waywiser/device/platform.hpp"

using namespace waywiser;

namespace {

// By the number that CUDA gives it. Throws unavailable.
Place gpu_numbered(const ww_group& group, int number) {
  const Platform& platform = *group.group.platform();
  for (int index = 0; index < platform.gpu_count(); ++index)
    if (platform.native_number(index) == number) return gpu(index);
  throw Error(ErrorKind::unavailable,
              "there is no GPU " + std::to_string(number) + ", there are " + std::to_string(platform.gpu_count()));
}

}  // namespace

int ww_stream_borrow(ww_group* group, int gpu, void* cuda_stream, ww_stream** stream) {
  return guarded([&] {
    given(stream, "the place for the stream");
    const Place place = gpu_numbered(given(group, "the group"), gpu);
    *stream = new ww_stream{borrow_stream(group->group, place, cuda_stream)};
  });
}

int ww_stream_create(ww_group* group, int gpu, ww_stream** stream) {
  return guarded([&] {
    given(stream, "the place for the stream");
    const Place place = gpu_numbered(given(group, "the group"), gpu);
    *stream = new ww_stream{group->group.platform()->open_stream(place)};
  });
}

int ww_stream_synchronize(ww_group* group, ww_stream* stream) {
  return guarded([&] { given(group, "the group").group.synchronize(*given(stream, "the stream").stream); });
}

void ww_stream_free(ww_stream* stream) { delete stream; }

int ww_gpu_allocate(ww_group* group, int gpu, size_t bytes, void** memory) {
  return guarded([&] {
    given(memory, "the place for the memory");
    const Place place = gpu_numbered(given(group, "the group"), gpu);
    *memory = group->memory->add(group->group.platform()->allocate(place, std::max<Bytes>(bytes, 1), Allocation::gpu));
  });
}

int ww_gpu_free(ww_group* group, void* memory) {
  return guarded([&] {
    if (memory != nullptr) given(group, "the group").memory->free(memory);
  });
}

int ww_gpu_copy(ww_group* group, void* to, const void* from, size_t bytes) {
  return guarded([&] {
    given(group, "the group");
    if (bytes == 0) return;
    const Region destination = elements(*group, to, bytes, WW_UINT8).region;
    const ConstRegion source = elements(*group, from, bytes, WW_UINT8).region;
    Platform& platform = *group->group.platform();
    const auto stream = platform.open_stream(destination.place.is_gpu() ? destination.place : source.place);
    stream->copy(destination, source);
    stream->synchronize(Deadline::in(group->group.timeout()));
  });
}

int ww_gpu_prepare(ww_group* group, int gpu, size_t largest) {
  return guarded([&] {
    const Place place = gpu_numbered(given(group, "the group"), gpu);
    group->group.prepare(place, largest);
  });
}
