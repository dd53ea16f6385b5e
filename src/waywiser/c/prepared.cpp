#include <string_view>
#include <utility>

#include "waywiser/c/handles.hpp"

using namespace waywiser;

namespace {

// How many elements input and output have at this rank.
std::pair<std::size_t, std::size_t> counts_of(const Group& group, std::string_view operation, std::size_t count,
                                              int root) {
  const std::size_t all = static_cast<std::size_t>(group.size()) * count;
  const bool is_root = group.rank() == root;
  if (operation == "broadcast") return {0, count};
  if (operation == "reduce") return {count, is_root ? count : 0};
  if (operation == "exscan") return {count, group.rank() == 0 ? 0 : count};
  if (operation == "all_gather") return {count, all};
  if (operation == "gather") return {count, is_root ? all : 0};
  if (operation == "scatter") return {is_root ? all : 0, count};
  if (operation == "reduce_scatter") return {all, count};
  if (operation == "all_to_all") return {all, all};
  return {count, count};
}

}  // namespace

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
    const auto [in, out] = counts_of(of, called, count, root);
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
