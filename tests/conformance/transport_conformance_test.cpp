// Every mechanism passes this one suite, on host memory, on virtual GPUs in several interleavings, and on CUDA GPUs
// where there are any.
#include <algorithm>

#include "tests/conformance/cases.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser::conformance {
namespace {

constexpr std::byte poison{0xa5};
constexpr Bytes arena_bytes = 400000;

Allocation allocation_for(Place place) { return place.is_gpu() ? Allocation::gpu : Allocation::pinned; }

class Conformance : public testing::TestWithParam<Case> {
 protected:
  Conformance()
      : platform_(open_platform(GetParam())),
        bytewise_(*platform_),
        transport_(open_transport(path(), {.platform = *platform_, .repeats = true})),
        stream_(platform_->open_stream(find_mechanism(path().mechanism)->works_on(path()))),
        source_(allocate(path().source, arena_bytes)),
        destination_(allocate(path().destination, arena_bytes)),
        sent_(pattern(arena_bytes, 1)) {
    bytewise_.write(source_.region(), sent_);
    bytewise_.write(destination_.region(), std::vector<std::byte>(arena_bytes, poison));
  }

  static const Path& path() { return GetParam().path; }
  static Deadline soon() { return Deadline::in(20); }
  // Later work on the stream; a host stream has nothing to do later, and cannot touch a GPU.
  void overwrite_source(Bytes at, Bytes bytes, unsigned seed, Memory& with) {
    with = allocate(path().source, bytes);
    bytewise_.write(with.region(), pattern(bytes, seed));
    const Region target = source_.region().slice(at, bytes);
    if (stream_->place().is_gpu()) return stream_->copy(target, with.region());
    bytewise_.write(target, pattern(bytes, seed));
  }
  Memory allocate(Place place, Bytes bytes) { return platform_->allocate(place, bytes, allocation_for(place)); }

  void put(Bytes to, Bytes from, Bytes bytes) {
    transport_->put(destination_.region().slice(to, bytes), source_.region().slice(from, bytes), *stream_);
  }
  void finish() { transport_->finish(*stream_, soon()); }

  // The expected contents of the destination after put(to, from, bytes).
  void expect(std::vector<std::byte>& arena, Bytes to, Bytes from, Bytes bytes) const {
    std::copy_n(sent_.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                arena.begin() + static_cast<std::ptrdiff_t>(to));
  }
  // Compares every byte, including those around the target.
  void check(const std::vector<std::byte>& arena) {
    const std::vector<std::byte> got = bytewise_.read(destination_.region());
    const auto wrong = std::ranges::mismatch(got, arena);
    ASSERT_TRUE(wrong.in1 == got.end()) << "first wrong byte at " << wrong.in1 - got.begin();
  }

  std::unique_ptr<Platform> platform_;
  Bytewise bytewise_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Stream> stream_;
  Memory source_;
  Memory destination_;
  std::vector<std::byte> sent_;
};

ErrorKind kind_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::interrupted;
}

TEST_P(Conformance, EverySizeAndAlignmentArrivesAndNothingAround) {
  const Bytes page = page_size();
  std::vector<std::byte> arena(arena_bytes, poison);
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{2}, Bytes{7}, Bytes{8}, Bytes{17}, Bytes{255}, page - 1, page,
                            page + 1, 3 * page, Bytes{65536}, Bytes{65537}, Bytes{300001}}) {
    for (const auto& [to, from] : {std::pair<Bytes, Bytes>{0, 0}, {page, page}, {1, 0}, {page - 1, 3}, {48, 2}}) {
      put(to, from, bytes);
      expect(arena, to, from, bytes);
      finish();
    }
    check(arena);
  }
}

TEST_P(Conformance, ManyPutsInFlight) {
  std::vector<std::byte> arena(arena_bytes, poison);
  Bytes at = 3;
  for (Bytes i = 0; i < 60; ++i) {
    const Bytes bytes = (i * i * 37) % 12000;
    put(at, 2 * i, bytes);
    expect(arena, at, 2 * i, bytes);
    at += bytes + i % 3;
  }
  finish();
  check(arena);
}

TEST_P(Conformance, TheLastPutWins) {
  std::vector<std::byte> arena(arena_bytes, poison);
  for (Bytes i = 0; i < 20; ++i) {
    put(1000 + i, 50 * i, 30000);
    expect(arena, 1000 + i, 50 * i, 30000);
  }
  finish();
  check(arena);
}

TEST_P(Conformance, TheStreamMayReuseTheSourceAfterAPut) {
  Memory other;
  std::vector<std::byte> arena(arena_bytes, poison);
  put(100, 200, 50000);
  overwrite_source(200, 50000, 9, other);
  expect(arena, 100, 200, 50000);
  finish();
  check(arena);
}

TEST_P(Conformance, APutSeesWhatTheStreamWroteBefore) {
  Memory other;
  overwrite_source(4096, 50000, 7, other);
  put(0, 4096, 50000);
  finish();
  EXPECT_EQ(bytewise_.read(destination_.region().slice(0, 50000)), pattern(50000, 7));
}

TEST_P(Conformance, OneTransportServesTwoStreams) {
  const auto second = platform_->open_stream(stream_->place());
  std::vector<std::byte> arena(arena_bytes, poison);
  for (Bytes i = 0; i < 10; ++i) {
    const Bytes to = i * 30001;
    Stream& stream = i % 2 == 0 ? *stream_ : *second;
    transport_->put(destination_.region().slice(to, 30000), source_.region().slice(i, 30000), stream);
    expect(arena, to, i, 30000);
  }
  finish();
  transport_->finish(*second, soon());
  check(arena);
}

TEST_P(Conformance, BothDirectionsAtOnce) {
  const Path back = reversed(path());
  const TransportContext context{.platform = *platform_, .repeats = true};
  if (const auto why = why_unavailable(back, context)) GTEST_SKIP() << *why;
  const auto transport = open_transport(back, context);
  const auto stream = platform_->open_stream(find_mechanism(back.mechanism)->works_on(back));
  const Memory from = allocate(back.source, 200000);
  const Memory to = allocate(back.destination, 200000);
  bytewise_.write(from.region(), pattern(200000, 3));
  std::vector<std::byte> arena(arena_bytes, poison);
  for (Bytes i = 0; i < 8; ++i) {
    put(i * 20000, i, 20000);
    expect(arena, i * 20000, i, 20000);
    transport->put(to.region().slice(i * 25000, 25000), from.region().slice(i * 25000, 25000), *stream);
  }
  finish();
  transport->finish(*stream, soon());
  check(arena);
  EXPECT_EQ(bytewise_.read(to.region()), pattern(200000, 3));
}

TEST_P(Conformance, ASignalFollowsItsData) {
  const Memory flag = allocate(path().destination, 8);
  const Memory seen = allocate(path().destination, 5 * 40000);
  bytewise_.write(flag.region(), std::vector<std::byte>(8));
  const auto reader = platform_->open_stream(path().destination);
  const auto look = [&](Bytes i) {
    reader->wait_value(flag.region(), i + 1);
    reader->copy(seen.region().slice(i * 40000, 40000), destination_.region().slice(i * 40000, 40000));
  };
  const bool inline_reader = !path().destination.is_gpu();
  for (Bytes i = 0; i < 5; ++i) {
    if (!inline_reader) look(i);
    put(i * 40000, i, 40000);
    transport_->signal(flag.region(), i + 1, *stream_);
    if (inline_reader && GetParam().reorder_seed != 0) finish();  // nothing runs unless someone waits
    if (inline_reader) look(i);
  }
  finish();
  reader->synchronize(soon());
  std::vector<std::byte> expected(5 * 40000);
  for (Bytes i = 0; i < 5; ++i) expect(expected, i * 40000, i, 40000);
  EXPECT_EQ(bytewise_.read(seen.region()), expected);
}

TEST_P(Conformance, OffsetsBeyondFourGigabytes) {
  if (GetParam().backend == "cuda" && !(path().source.is_gpu() && path().destination.is_gpu()))
    GTEST_SKIP() << "so much memory would have to be pinned";
  const Bytes offset = (Bytes{4} << 30) + 4099;
  const auto sparse = [&](Place place) {
    return platform_->allocate(place, offset + 100000, place.is_gpu() ? Allocation::gpu : Allocation::shared);
  };
  const Memory from = sparse(path().source);
  const Memory to = sparse(path().destination);
  const Region here = from.region().slice(offset, 70001);
  const Region there = to.region().slice(offset + 5, 70001);
  bytewise_.write(here, pattern(70001, 4));
  transport_->put(there, here, *stream_);
  finish();
  EXPECT_EQ(bytewise_.read(there), pattern(70001, 4));
}

TEST_P(Conformance, WrongPutsAreRefusedAndChangeNothing) {
  const Region destination = destination_.region();
  const Region source = source_.region();
  const auto refused = [&](Region to, ConstRegion from) {
    EXPECT_EQ(kind_of([&] { transport_->put(to, from, *stream_); }), ErrorKind::invalid_input);
  };
  refused(destination.slice(0, 10), source.slice(0, 11));
  refused(destination.slice(0, 10), source.slice(0, 0));
  if (path().source == path().destination) {
    refused(source.slice(0, 100), source.slice(99, 100));
    refused(source.slice(50, 100), source.slice(50, 100));
  }
  put(0, 0, 10);
  finish();
  std::vector<std::byte> arena(arena_bytes, poison);
  expect(arena, 0, 0, 10);
  check(arena);
}

TEST_P(Conformance, MemoryOpenedThroughAHandleOutlivesItsOwner) {
  if (GetParam().backend == "cuda") GTEST_SKIP() << "CUDA opens handles in another process only";
  const Place place = path().destination;
  Memory owner = platform_->allocate(place, 60000, place.is_gpu() ? Allocation::gpu_mapped : Allocation::shared);
  const Memory opened = platform_->open_memory(platform_->export_memory(owner));
  transport_->put(opened.region().slice(0, 30000), source_.region().slice(0, 30000), *stream_);
  finish();
  EXPECT_EQ(bytewise_.read(owner.region().slice(0, 30000)), std::vector(sent_.begin(), sent_.begin() + 30000));
  owner = Memory();
  transport_->put(opened.region().slice(30000, 30000), source_.region().slice(1, 30000), *stream_);
  finish();
  EXPECT_EQ(bytewise_.read(opened.region().slice(30000, 30000)), std::vector(sent_.begin() + 1, sent_.begin() + 30001));
}

using DeadGpu = testing::TestWithParam<Case>;

TEST_P(DeadGpu, EndsInATimeoutThatNamesIt) {
  const Path& path = GetParam().path;
  const Place worker = find_mechanism(path.mechanism)->works_on(path);
  VirtualMachine machine = four_gpus();
  machine.dead_gpu = worker.index;
  machine.reorder_seed = GetParam().reorder_seed;
  const auto platform = open_virtual_platform(machine);
  const Memory source = platform->allocate(path.source, 10000, allocation_for(path.source));
  const Memory destination = platform->allocate(path.destination, 10000, allocation_for(path.destination));
  const auto transport = open_transport(path, {*platform});
  const auto stream = platform->open_stream(worker);
  transport->put(destination.region(), source.region(), *stream);
  try {
    transport->finish(*stream, Deadline::in(0.005));
    FAIL() << "a dead GPU has finished its work";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    EXPECT_NE(std::string(error.what()).find(text(worker)), std::string::npos) << error.what();
  }
}

std::vector<Case> cases_of_virtual_gpus() {
  std::vector<Case> cases;
  for (const Case& each : all_cases())
    if (each.backend == "virtual_gpu" && find_mechanism(each.path.mechanism)->works_on(each.path).is_gpu())
      cases.push_back(each);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, DeadGpu, testing::ValuesIn(cases_of_virtual_gpus()), case_name);
INSTANTIATE_TEST_SUITE_P(Mechanisms, Conformance, testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace waywiser::conformance
