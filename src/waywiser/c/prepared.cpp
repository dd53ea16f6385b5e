#include "waywiser/c/handles.hpp"

using namespace waywiser;

int ww_prepare_exchange(ww_group* group, const ww_exchange* neighbors, size_t count, ww_prepared** prepared) {
  return guarded([&] {
    given(prepared, "the address for the prepared exchange");
    given(group, "the group");
    *prepared = new ww_prepared{group->group.prepare_exchange(exchanges(*group, neighbors, count))};
  });
}

int ww_prepared_start(ww_prepared* prepared, ww_stream* stream) {
  return guarded([&] {
    Prepared& operation = given(prepared, "the prepared exchange").prepared;
    stream == nullptr ? operation.start() : operation.start(*stream->stream);
  });
}

int ww_prepared_wait(ww_prepared* prepared) {
  return guarded([&] { given(prepared, "the prepared exchange").prepared.wait(); });
}

void ww_prepared_free(ww_prepared* prepared) { delete prepared; }
