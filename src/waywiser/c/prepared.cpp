#include <string_view>

#include "waywiser/c/handles.hpp"
#include "waywiser/group/wanted_collective.hpp"

using namespace waywiser;

int ww_prepare_exchange(ww_group* group, const ww_exchange* neighbors, size_t count, ww_prepared** prepared) {
  return guarded([&] {
    given(prepared, "the address for the prepared exchange");
    given(group, "the group");
    *prepared = new ww_prepared{group->group.prepare_exchange(exchanges(*group, neighbors, count))};
  });
}

int ww_prepare_collective(ww_group* group, const char* operation, const void* input, void* output, size_t count,
                          ww_type type, ww_op op, int root, ww_prepared** prepared) {
  return guarded([&] {
    given(prepared, "the address for the prepared collective");
    Group& of = given(group, "the group").group;
    const std::string_view called(&given(operation, "the name of the collective"));
    const auto [in, out] = array_counts(called, count, {of.rank(), of.size(), root});
    *prepared = new ww_prepared{Prepared::of_collective(of, called, elements(*group, input, in, type),
                                                        elements(*group, output, out, type), reduce_op(op), root)};
  });
}

int ww_prepared_start(ww_prepared* prepared, ww_stream* stream) {
  return guarded([&] {
    Prepared& operation = given(prepared, "the prepared operation").prepared;
    stream == nullptr ? operation.start() : operation.start(*stream->stream);
  });
}

int ww_prepared_wait(ww_prepared* prepared) {
  return guarded([&] { given(prepared, "the prepared operation").prepared.wait(); });
}

void ww_prepared_free(ww_prepared* prepared) { delete prepared; }
