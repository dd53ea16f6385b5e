#include <numeric>
#include <span>

#include "waywiser/c/handles.hpp"
#include "waywiser/group/scans.hpp"

using namespace waywiser;

namespace {

std::size_t ranks(const ww_group* group) { return static_cast<std::size_t>(group->group.size()); }
bool is_root(const ww_group* group, int root) { return group->group.rank() == root; }

std::span<const std::size_t> counts_of(const ww_group* group, const std::size_t* counts) {
  return {&given(counts, "the array of counts"), ranks(group)};
}

std::size_t sum(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t own(const ww_group* group, std::span<const std::size_t> counts) {
  return counts[static_cast<std::size_t>(group->group.rank())];
}

template <typename Locate>
int located(ww_group* group, const void* values, const std::int64_t* locations, void* found, std::int64_t* found_at,
            std::size_t count, ww_type type, Locate locate) noexcept {
  return guarded([&] {
    given(group, "the group");
    const std::span at(count == 0 ? locations : &given(locations, "the array of locations"), count);
    const std::span to(count == 0 ? found_at : &given(found_at, "the array of locations found"), count);
    locate(group->group, elements(*group, values, count, type), at, elements(*group, found, count, type), to);
  });
}

}  // namespace

int ww_barrier(ww_group* group, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) { return group->group.barrier(when); });
}

int ww_broadcast(ww_group* group, void* data, size_t count, ww_type type, int root, ww_mode mode) {
  return call_in_mode(
      group, mode, [&](Mode when) { return group->group.broadcast(elements(*group, data, count, type), root, when); });
}

int ww_reduce(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op, int root,
              ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const std::size_t taken = is_root(group, root) ? count : 0;
    return group->group.reduce(elements(*group, input, count, type), elements(*group, output, taken, type),
                               reduce_op(op), root, when);
  });
}

int ww_all_reduce(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op,
                  ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return group->group.all_reduce(elements(*group, input, count, type), elements(*group, output, count, type),
                                   reduce_op(op), when);
  });
}

int ww_scan(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return scan(group->group, elements(*group, input, count, type), elements(*group, output, count, type),
                reduce_op(op), when);
  });
}

int ww_exscan(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const std::size_t taken = is_root(group, 0) ? 0 : count;
    return exscan(group->group, elements(*group, input, count, type), elements(*group, output, taken, type),
                  reduce_op(op), when);
  });
}

int ww_minloc(ww_group* group, const void* values, const int64_t* locations, void* found, int64_t* found_at,
              size_t count, ww_type type) {
  return located(group, values, locations, found, found_at, count, type, minloc);
}

int ww_maxloc(ww_group* group, const void* values, const int64_t* locations, void* found, int64_t* found_at,
              size_t count, ww_type type) {
  return located(group, values, locations, found, found_at, count, type, maxloc);
}

int ww_reduce_scatter(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op,
                      ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return group->group.reduce_scatter(elements(*group, input, ranks(group) * count, type),
                                       elements(*group, output, count, type), reduce_op(op), when);
  });
}

int ww_all_gather(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return group->group.all_gather(elements(*group, input, count, type),
                                   elements(*group, output, ranks(group) * count, type), when);
  });
}

int ww_all_to_all(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const std::size_t all = ranks(group) * count;
    return group->group.all_to_all(elements(*group, input, all, type), elements(*group, output, all, type), when);
  });
}

int ww_gather(ww_group* group, const void* input, void* output, size_t count, ww_type type, int root, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const std::size_t taken = is_root(group, root) ? ranks(group) * count : 0;
    return group->group.gather(elements(*group, input, count, type), elements(*group, output, taken, type), root, when);
  });
}

int ww_scatter(ww_group* group, const void* input, void* output, size_t count, ww_type type, int root, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const std::size_t given_out = is_root(group, root) ? ranks(group) * count : 0;
    return group->group.scatter(elements(*group, input, given_out, type), elements(*group, output, count, type), root,
                                when);
  });
}

int ww_all_gather_v(ww_group* group, const void* input, void* output, const size_t* counts, ww_type type,
                    ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const auto all = counts_of(group, counts);
    return group->group.all_gather_v(elements(*group, input, own(group, all), type),
                                     elements(*group, output, sum(all), type), all, when);
  });
}

int ww_all_to_all_v(ww_group* group, const void* input, const size_t* give, void* output, const size_t* take,
                    ww_type type, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const auto given_counts = counts_of(group, give), taken_counts = counts_of(group, take);
    return group->group.all_to_all_v(elements(*group, input, sum(given_counts), type), given_counts,
                                     elements(*group, output, sum(taken_counts), type), taken_counts, when);
  });
}

int ww_gather_v(ww_group* group, const void* input, void* output, const size_t* counts, ww_type type, int root,
                ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const auto all = counts_of(group, counts);
    return group->group.gather_v(elements(*group, input, own(group, all), type),
                                 elements(*group, output, is_root(group, root) ? sum(all) : 0, type), all, root, when);
  });
}

int ww_scatter_v(ww_group* group, const void* input, const size_t* counts, void* output, ww_type type, int root,
                 ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    const auto all = counts_of(group, counts);
    return group->group.scatter_v(elements(*group, input, is_root(group, root) ? sum(all) : 0, type), all,
                                  elements(*group, output, own(group, all), type), root, when);
  });
}
