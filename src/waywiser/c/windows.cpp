#include <memory>

#include "waywiser/c/handles.hpp"

using namespace waywiser;

namespace {

int expose(ww_group* group, void* memory, size_t bytes, bool symmetric, ww_window** window) {
  return guarded([&] {
    given(window, "the place for the window");
    const Region region = elements(given(group, "the group"), memory, bytes, WW_UINT8).region;
    *window = new ww_window{group->group.expose(region, symmetric), group};
  });
}

}  // namespace

int ww_expose(ww_group* group, void* memory, size_t bytes, ww_window** window) {
  return expose(group, memory, bytes, false, window);
}

int ww_expose_symmetric(ww_group* group, void* memory, size_t bytes, ww_window** window) {
  return expose(group, memory, bytes, true, window);
}

void ww_window_free(ww_window* window) { delete window; }

int ww_window_bytes(const ww_window* window, int rank, size_t* bytes) {
  return guarded([&] {
    given(bytes, "the place for the answer");
    *bytes = given(window, "the window").window.bytes_of(rank);
  });
}

int ww_put(ww_window* window, const void* data, size_t bytes, int to, size_t offset) {
  return guarded([&] {
    const auto& [there, group] = given(window, "the window");
    there.put(elements(*group, data, bytes, WW_UINT8).region, to, offset);
  });
}

int ww_get(ww_window* window, void* data, size_t bytes, int from, size_t offset) {
  return guarded([&] {
    const auto& [there, group] = given(window, "the window");
    there.get(elements(*group, data, bytes, WW_UINT8).region, from, offset);
  });
}

int ww_signal(ww_window* window, int to, size_t offset, uint64_t value) {
  return guarded([&] { given(window, "the window").window.signal(to, offset, value); });
}

int ww_wait_signal(ww_window* window, size_t offset, uint64_t at_least) {
  return guarded([&] { given(window, "the window").window.wait(offset, at_least); });
}

int ww_flush(ww_group* group) {
  return guarded([&] { given(group, "the group").group.flush(); });
}
