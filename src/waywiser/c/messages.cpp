#include "waywiser/c/handles.hpp"

using namespace waywiser;

int ww_send(ww_group* group, const void* data, size_t count, ww_type type, int to, int tag, ww_mode mode) {
  return call_in_mode(group, mode,
                      [&](Mode when) { return group->group.send(elements(*group, data, count, type), to, tag, when); });
}

int ww_recv(ww_group* group, void* data, size_t count, ww_type type, int from, int tag, ww_mode mode) {
  return call_in_mode(
      group, mode, [&](Mode when) { return group->group.recv(elements(*group, data, count, type), from, tag, when); });
}

int ww_sendrecv(ww_group* group, const void* data, size_t count, int to, void* into, size_t into_count, int from,
                ww_type type, int tag, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return group->group.sendrecv(elements(*group, data, count, type), to, elements(*group, into, into_count, type),
                                 from, tag, when);
  });
}

int ww_neighbor_exchange(ww_group* group, const ww_exchange* neighbors, size_t count, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return group->group.neighbor_exchange(exchanges(*group, neighbors, count), when);
  });
}

int ww_future_test(ww_future* future, int* done) {
  return guarded([&] {
    given(done, "the place for the answer");
    *done = static_cast<int>(given(future, "the future").future.done());
  });
}

int ww_future_wait(ww_future* future) {
  return guarded([&] { given(future, "the future").future.wait(); });
}

void ww_future_free(ww_future* future) { delete future; }
