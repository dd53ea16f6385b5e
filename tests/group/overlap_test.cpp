// Every collective with every overlap of its two arrays: the result is right, or one error says so before anything has
// moved.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <set>

#include "tests/group/overlapping_arrays.hpp"

namespace waywiser::overlapping::collectives {
namespace {

using Counts = std::vector<std::size_t>;

std::size_t sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::size_t{0}); }
std::size_t before(const Counts& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

// What a rank of so many has, when blocks have about `block` elements.
struct Shape {
  int ranks, rank;
  std::size_t block;
  static constexpr int root = 1;

  Counts equal() const { return Counts(static_cast<std::size_t>(ranks), block); }
  Counts unequal() const {
    Counts counts;
    for (int other = 0; other < ranks; ++other) counts.push_back(block + static_cast<std::size_t>(other));
    return counts;
  }
  Counts given() const {  // to each rank, in all_to_all_v
    Counts counts;
    for (int other = 0; other < ranks; ++other)
      counts.push_back(block + static_cast<std::size_t>(rank * 2 + other) % 3);
    return counts;
  }
  Counts taken() const {
    Counts counts;
    for (int other = 0; other < ranks; ++other) counts.push_back(of(other).given()[static_cast<std::size_t>(rank)]);
    return counts;
  }
  Shape of(int other) const { return {ranks, other, block}; }
};

enum class Uses { both, output_at_root, input_at_root };
enum class InPlace { same, same_if_copied, own_block };

struct Row {
  std::string name;
  std::function<std::size_t(const Shape&)> input, output;  // elements
  std::function<Future(Group&, ConstElements, Elements, const Shape&, Mode)> call;
  // The output, from the inputs of all ranks.
  std::function<Numbers(const std::vector<Numbers>&, const Shape&)> result;
  InPlace in_place = InPlace::same;
  Uses uses = Uses::both;
  bool of_unequal = false;
};

Numbers added(const std::vector<Numbers>& inputs, std::size_t first, std::size_t count) {
  Numbers total(count);
  for (const Numbers& each : inputs)
    for (std::size_t i = 0; i < count; ++i) total[i] += each[first + i];
  return total;
}
Numbers joined(const std::vector<Numbers>& inputs) {
  Numbers all;
  for (const Numbers& each : inputs) all.insert(all.end(), each.begin(), each.end());
  return all;
}
Numbers slice(const Numbers& numbers, std::size_t first, std::size_t count) {
  const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}
Numbers exchanged(const std::vector<Numbers>& inputs, const Shape& at, Counts (Shape::*given)() const) {
  std::vector<Numbers> blocks;
  for (int from = 0; from < at.ranks; ++from) {
    const Counts counts = (at.of(from).*given)();
    blocks.push_back(slice(inputs[static_cast<std::size_t>(from)], before(counts, at.rank),
                           counts[static_cast<std::size_t>(at.rank)]));
  }
  return joined(blocks);
}

std::vector<Row> rows() {
  const auto one = [](const Shape& at) { return at.block; };
  const auto all = [](const Shape& at) { return sum(at.equal()); };
  const auto mine = [](const Shape& at) { return at.unequal()[static_cast<std::size_t>(at.rank)]; };
  const auto of_all = [](const Shape& at) { return sum(at.unequal()); };
  const auto total = [](const auto& inputs, const Shape& at) { return added(inputs, 0, at.block); };
  const auto joint = [](const auto& inputs, const Shape&) { return joined(inputs); };
  constexpr int root = Shape::root;
  constexpr ReduceOp op = ReduceOp::sum;
  return {
      {"all_reduce", one, one, [](Group& g, auto in, auto out, auto&, Mode m) { return g.all_reduce(in, out, op, m); },
       total},
      {"reduce", one, one, [](Group& g, auto in, auto out, auto&, Mode m) { return g.reduce(in, out, op, root, m); },
       total, InPlace::same, Uses::output_at_root},
      {"reduce_scatter", all, one,
       [](Group& g, auto in, auto out, auto&, Mode m) { return g.reduce_scatter(in, out, op, m); },
       [](auto& inputs, const Shape& at) { return added(inputs, before(at.equal(), at.rank), at.block); },
       InPlace::own_block},
      {"all_gather", one, all, [](Group& g, auto in, auto out, auto&, Mode m) { return g.all_gather(in, out, m); },
       joint, InPlace::own_block},
      {"all_gather_v", mine, of_all,
       [](Group& g, auto in, auto out, auto& at, Mode m) { return g.all_gather_v(in, out, at.unequal(), m); }, joint,
       InPlace::own_block, Uses::both, true},
      {"gather", one, all, [](Group& g, auto in, auto out, auto&, Mode m) { return g.gather(in, out, root, m); }, joint,
       InPlace::own_block, Uses::output_at_root},
      {"gather_v", mine, of_all,
       [](Group& g, auto in, auto out, auto& at, Mode m) { return g.gather_v(in, out, at.unequal(), root, m); }, joint,
       InPlace::own_block, Uses::output_at_root, true},
      {"scatter", all, one, [](Group& g, auto in, auto out, auto&, Mode m) { return g.scatter(in, out, root, m); },
       [](auto& inputs, const Shape& at) { return slice(inputs[root], before(at.equal(), at.rank), at.block); },
       InPlace::own_block, Uses::input_at_root},
      {"scatter_v", of_all, mine,
       [](Group& g, auto in, auto out, auto& at, Mode m) { return g.scatter_v(in, at.unequal(), out, root, m); },
       [mine](auto& inputs, const Shape& at) { return slice(inputs[root], before(at.unequal(), at.rank), mine(at)); },
       InPlace::own_block, Uses::input_at_root, true},
      {"all_to_all", all, all, [](Group& g, auto in, auto out, auto&, Mode m) { return g.all_to_all(in, out, m); },
       [](auto& inputs, const Shape& at) { return exchanged(inputs, at, &Shape::equal); }, InPlace::same_if_copied},
      {"all_to_all_v", [](const Shape& at) { return sum(at.given()); }, [](const Shape& at) { return sum(at.taken()); },
       [](Group& g, auto in, auto out, auto& at, Mode m) { return g.all_to_all_v(in, at.given(), out, at.taken(), m); },
       [](auto& inputs, const Shape& at) { return exchanged(inputs, at, &Shape::given); }, InPlace::same_if_copied},
  };
}

// A call whose output lies `shift` elements from where it would be in place.
struct Trial {
  const Row& row;
  Shape at;
  When when;
  bool on_gpu;
  std::ptrdiff_t shift;

  std::size_t longest() const { return static_cast<std::size_t>(at.ranks) * (at.block + 3); }
  std::size_t input_at() const { return 2 * longest(); }
  std::size_t output_at() const {
    std::ptrdiff_t own = 0;
    if (row.in_place == InPlace::own_block) {
      own = static_cast<std::ptrdiff_t>(before(row.of_unequal ? at.unequal() : at.equal(), at.rank));
      if (row.output(at) > row.input(at)) own = -own;
    }
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(input_at()) + own + shift);
  }
  std::size_t room() const { return 6 * longest(); }
  bool uses_output() const { return row.uses != Uses::output_at_root || at.rank == Shape::root; }
  bool uses_both() const { return row.uses == Uses::both || at.rank == Shape::root; }
  bool may() const {
    const std::size_t in = input_at(), out = output_at();
    if (!uses_both() || in + row.input(at) <= out || out + row.output(at) <= in) return true;
    if (row.in_place == InPlace::same_if_copied)
      return in == out && row.input(at) == row.output(at) && !on_gpu && when == When::wait;
    return shift == 0;
  }
  std::string text() const {
    return row.name + " of blocks of " + std::to_string(at.block) + (on_gpu ? " on a GPU" : " on the host") +
           words(when) + ", the output " + std::to_string(shift) + " elements apart";
  }
};

Numbers expected(const Trial& trial, Numbers had) {
  if (!trial.uses_output()) return had;
  std::vector<Numbers> inputs;
  for (int rank = 0; rank < trial.at.ranks; ++rank)
    inputs.push_back(slice(numbers_of(rank, trial.room()), trial.input_at(), trial.row.input(trial.at.of(rank))));
  const Numbers result = trial.row.result(inputs, trial.at);
  std::ranges::copy(result, had.begin() + static_cast<std::ptrdiff_t>(trial.output_at()));
  return had;
}

// Called where it may be, if all ranks may; else a rank that may not is refused, and the others do not call.
void run(Group& group, const Trial& trial) {
  NumbersSomewhere numbers(group, trial.on_gpu, trial.room());
  const Numbers had = numbers_of(group.rank(), trial.room());
  numbers.set(had);
  const auto call = [&] {
    const Elements in = numbers.part(trial.input_at(), trial.row.input(trial.at));
    const Elements out = numbers.part(trial.output_at(), trial.row.output(trial.at));
    trial.row.call(group, in, out, trial.at, mode_of(trial.when, numbers)).wait();
    if (trial.when == When::stream) group.synchronize(*numbers.stream());
  };
  bool all_may = true;
  for (int rank = 0; rank < trial.at.ranks; ++rank)
    all_may = all_may && Trial{trial.row, trial.at.of(rank), trial.when, trial.on_gpu, trial.shift}.may();
  if (all_may) {
    call();
    return require_that(numbers.get(had.size()) == expected(trial, had), trial.text() + ": the result");
  }
  if (!trial.may()) require_refusal(trial.text(), call);
  require_that(numbers.get(had.size()) == had, trial.text() + ": the arrays as they were");
}

// All that there are; of longer blocks those around each border; of the longest, which take long, the least.
std::set<std::ptrdiff_t> shifts(std::size_t block, int ranks) {
  std::set<std::ptrdiff_t> all{-1, 0, 1};
  const auto size = static_cast<std::ptrdiff_t>(block), longest = ranks * (size + 3);
  if (block < 10)
    for (std::ptrdiff_t shift = -longest; shift <= longest; ++shift) all.insert(shift);
  else if (block < 10'000)
    for (const std::ptrdiff_t shift : {size / 2, size - 1, size, longest}) all.insert({shift, -shift});
  return all;
}

void try_all(Group& group, bool on_gpu, std::size_t block) {
  if (on_gpu) group.prepare(gpu_of_rank(group), block * sizeof(std::int32_t));
  for (const Row& row : rows())
    for (const When when : {When::wait, When::begin, When::stream})
      for (const std::ptrdiff_t shift : shifts(block, group.size()))
        if (on_gpu || when != When::stream) run(group, {row, {group.size(), group.rank(), block}, when, on_gpu, shift});
  group.barrier();
}

class OverlapOnHosts : public testing::TestWithParam<std::size_t> {};
TEST_P(OverlapOnHosts, EveryCollectiveIsRightOrRefused) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) { try_all(group, false, GetParam()); }), no_problems);
}
INSTANTIATE_TEST_SUITE_P(Blocks, OverlapOnHosts, testing::Values(1, 3, 1000, 40000));

class OverlapOnGpus : public testing::TestWithParam<std::size_t> {};
TEST_P(OverlapOnGpus, EveryCollectiveIsRightOrRefused) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) { try_all(group, true, GetParam()); }), no_problems);
}
INSTANTIATE_TEST_SUITE_P(Blocks, OverlapOnGpus, testing::Values(1, 3, 1000));

}  // namespace
}  // namespace waywiser::overlapping::collectives
