#include <deque>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "waywiser/c/handles.hpp"
#include "waywiser/table/shuffle.hpp"

using namespace waywiser;

struct ww_shuffle {
  Shuffle shuffle;
  std::map<int, std::deque<Batch>> coming;  // of parts of which some are extracted
};

namespace {

// Does not own what it has: the caller does.
Batch borrowed(const ArrowArray* given_batch) {
  ArrowArray array = given(given_batch, "the batch");
  if (array.release == nullptr) throw Error(ErrorKind::invalid_input, "the batch has been released");
  array.release = nullptr;
  return Batch(array);
}

Shuffle& shuffle_of(ww_shuffle* shuffle) { return given(shuffle, "the shuffle").shuffle; }

}  // namespace

int ww_shuffle_begin(ww_group* group, const ArrowSchema* schema, int parts, uint64_t budget, uint64_t piece,
                     uint64_t memory, const char* spill, ww_shuffle** shuffle) {
  return guarded([&] {
    given(shuffle, "the place for the shuffle");
    Group& ranks = given(group, "the group").group;
    ShuffleOptions options;
    options.parts = parts;
    if (budget != 0) options.budget = budget;
    options.piece = piece;
    options.memory = memory;
    if (spill != nullptr) options.spill = spill;
    const auto own = [&]() -> const ArrowSchema& {
      if (given(schema, "the schema").release == nullptr)
        throw Error(ErrorKind::invalid_input, "the schema has been released");
      return *schema;
    };
    *shuffle = new ww_shuffle{{ranks, own, std::move(options)}, {}};
  });
}

int ww_shuffle_insert(ww_shuffle* shuffle, const ArrowArray* batch, int part) {
  return guarded([&] { shuffle_of(shuffle).insert(borrowed(batch), part); });
}

int ww_shuffle_insert_by(ww_shuffle* shuffle, const ArrowArray* batch, const int* columns, size_t count) {
  return guarded([&] {
    if (count != 0) given(columns, "the array of columns");
    shuffle_of(shuffle).insert(borrowed(batch), std::span(columns, count));
  });
}

int ww_shuffle_complete(ww_shuffle* shuffle, int part) {
  return guarded([&] { shuffle_of(shuffle).complete(part); });
}

int ww_shuffle_finish(ww_shuffle* shuffle) {
  return guarded([&] { shuffle_of(shuffle).finish(); });
}

int ww_shuffle_take_all(ww_shuffle* shuffle) {
  return guarded([&] { shuffle_of(shuffle).take_all(); });
}

int ww_shuffle_next(ww_shuffle* shuffle, int* part) {
  return guarded([&] { given(part, "the place for the part") = shuffle_of(shuffle).next().value_or(-1); });
}

int ww_shuffle_extract(ww_shuffle* shuffle, int part, ArrowArray* batch) {
  return guarded([&] {
    given(batch, "the place for the batch");
    Shuffle& of = shuffle_of(shuffle);
    auto found = shuffle->coming.find(part);
    if (found == shuffle->coming.end()) {
      std::vector<Batch> all = of.extract(part);
      found = shuffle->coming.emplace(part, std::deque(std::move_iterator(all.begin()), std::move_iterator(all.end())))
                  .first;
    }
    if (found->second.empty()) {
      shuffle->coming.erase(found);
      *batch = {};
    } else {
      *batch = found->second.front().move_out();
      found->second.pop_front();
    }
  });
}

void ww_shuffle_free(ww_shuffle* shuffle) { delete shuffle; }
