// Messages, prepared operations and windows with every overlap of what is read and what is written.
#include <gtest/gtest.h>

#include "tests/group/overlapping_arrays.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser::overlapping::messages {
namespace {

constexpr std::size_t count = 5, read_at = 8, room = 2 * read_at + count;
constexpr std::ptrdiff_t farthest = 7;

// What is written lies `shift` elements from what is read.
struct Trial {
  bool on_gpu = false;
  When when = When::wait;
  std::ptrdiff_t shift = 0;

  std::size_t written_at() const { return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(read_at) + shift); }
  bool apart() const {
    return shift <= -static_cast<std::ptrdiff_t>(count) || shift >= static_cast<std::ptrdiff_t>(count);
  }
  std::string text(const std::string& call) const {
    return call + (on_gpu ? " on a GPU" : " on the host") + words(when) + ", written " + std::to_string(shift) +
           " elements apart";
  }
};

// `call(numbers, read, written)`; `wanted`: what is in `written` afterwards.
template <typename Call>
void expect(Group& group, const Trial& trial, bool may, const Numbers& wanted, const std::string& what, Call call) {
  NumbersSomewhere numbers(group, trial.on_gpu, room);
  Numbers had = numbers_of(group.rank(), room);
  numbers.set(had);
  const Elements read = numbers.part(read_at, count), written = numbers.part(trial.written_at(), count);
  const auto whole = [&] {
    call(numbers, read, written);
    if (trial.when == When::stream) group.synchronize(*numbers.stream());
  };
  if (may) {
    whole();
    std::ranges::copy(wanted, had.begin() + static_cast<std::ptrdiff_t>(trial.written_at()));
  } else {
    require_refusal(trial.text(what), whole);
  }
  require_that(numbers.get(room) == had, trial.text(what) + (may ? ": the result" : ": the arrays as they were"));
  group.barrier();
}

Numbers read_by(int rank) {
  const Numbers all = numbers_of(rank, room);
  return {all.begin() + read_at, all.begin() + read_at + count};
}

template <typename Try>
void try_all(Group& group, bool with_streams, Try try_one) {
  for (const bool on_gpu : {false, true})
    for (const When when : {When::wait, When::begin, When::stream})
      for (std::ptrdiff_t shift = -farthest; shift <= farthest; ++shift)
        if (when != When::stream || (on_gpu && with_streams)) try_one(Trial{on_gpu, when, shift});
  group.barrier();
}

struct Ring {
  explicit Ring(const Group& group)
      : right((group.rank() + 1) % group.size()), left((group.rank() + group.size() - 1) % group.size()) {}
  int right, left;
};

void first_on_gpus(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  group.barrier(Mode::on(*stream));
  group.synchronize(*stream);
}

void sendrecv(Group& group) {
  first_on_gpus(group);
  const Ring ring(group);
  try_all(group, true, [&](const Trial& trial) {
    const bool copies = trial.when == When::wait || (trial.when == When::begin && !trial.on_gpu);
    const auto with = [&](int to, int from, const std::string& what) {
      expect(group, trial, trial.apart() || (trial.shift == 0 && copies), read_by(from), what,
             [&](auto& numbers, Elements read, Elements written) {
               group.sendrecv(read, to, written, from, 0, mode_of(trial.when, numbers)).wait();
             });
    };
    with(ring.right, ring.left, "sendrecv");
    with(group.rank(), group.rank(), "sendrecv with itself");
  });
}

std::vector<Exchange> exchange_around(const Ring& ring, Elements read, Elements written) {
  return {{ring.right, read, {}, 0, 1}, {ring.left, {}, written, 1, 0}};
}

void neighbor_exchange(Group& group) {
  first_on_gpus(group);
  const Ring ring(group);
  try_all(group, true, [&](const Trial& trial) {
    expect(group, trial, trial.apart(), read_by(ring.left), "neighbor_exchange",
           [&](auto& numbers, Elements read, Elements written) {
             group.neighbor_exchange(exchange_around(ring, read, written), mode_of(trial.when, numbers)).wait();
           });
  });
}

void prepared_exchange(Group& group) {
  const Ring ring(group);
  try_all(group, true, [&](const Trial& trial) {
    expect(group, trial, trial.apart(), read_by(ring.left), "a prepared exchange",
           [&](auto& numbers, Elements read, Elements written) {
             Prepared prepared = group.prepare_exchange(exchange_around(ring, read, written));
             if (trial.when == When::stream) {
               prepared.start(*numbers.stream());
               return group.synchronize(*numbers.stream());
             }
             prepared.start();
             prepared.wait();
           });
  });
}

// One step: the second array gets what the first has.
void prepared_schedule(Group& group) {
  try_all(group, false, [&](const Trial& trial) {
    expect(group, trial, trial.apart(), read_by(group.rank()), "a prepared schedule",
           [&](auto&, Elements read, Elements written) {
             Schedule copy{"copy", group.rank(), group.size(), 0, 0, 0, {}, {}, {}};
             copy.arrays = {{DataType::int32, count, ArrayUse::given}, {DataType::int32, count, ArrayUse::taken}};
             copy.steps = {{StepKind::copy, 0, -1, {Area::array, 0, count, 1, 0}, {Area::array, 0, count, 0, 0}}};
             const Elements arrays[] = {read, written};
             Prepared prepared = Prepared::of_schedule(group, copy, arrays);
             prepared.start();
             prepared.wait();
           });
  });
}

// Of this rank's own memory, all of which is the window.
void windows(Group& group) {
  for (const bool on_gpu : {false, true})
    for (std::ptrdiff_t shift = -farthest; shift <= farthest; ++shift) {
      const Trial trial{on_gpu, When::wait, shift};
      const auto with = [&](const std::string& what, auto access) {
        expect(group, trial, trial.apart(), read_by(group.rank()), what,
               [&](auto& numbers, Elements read, Elements written) {
                 const Region all = numbers.part(0, room).region;
                 Window window = group.expose(all);
                 const auto offset = [&](const Elements& at) { return static_cast<Bytes>(at.region.data - all.data); };
                 access(window, read, offset(read), written, offset(written));
                 group.flush();
               });
      };
      with("put", [&](Window& window, Elements read, Bytes, Elements, Bytes to) {
        window.put(read.region, group.rank(), to);
      });
      with("get", [&](Window& window, Elements, Bytes from, Elements written, Bytes) {
        window.get(written.region, group.rank(), from);
      });
    }
}

struct Family {
  const char* name;
  void (*try_it)(Group&);
};

class OverlapBesideCollectives : public testing::TestWithParam<Family> {};
TEST_P(OverlapBesideCollectives, IsRightOrRefused) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes(GetParam().try_it), no_problems);
}
INSTANTIATE_TEST_SUITE_P(Calls, OverlapBesideCollectives,
                         testing::Values(Family{"sendrecv", sendrecv}, Family{"neighbor_exchange", neighbor_exchange},
                                         Family{"prepared_exchange", prepared_exchange},
                                         Family{"prepared_schedule", prepared_schedule}, Family{"windows", windows}),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace waywiser::overlapping::messages
