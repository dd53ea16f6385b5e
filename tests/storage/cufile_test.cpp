#include <dlfcn.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/storage/storage_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/policy/plan.hpp"
#include "waywiser/storage/cufile_library.hpp"
#include "waywiser/storage/file.hpp"
#include "waywiser/storage/mount.hpp"

namespace waywiser {
namespace {

Stream* reaching = nullptr;

// Files and arrays of virtual GPUs, with a library in the place of cuFile.
class CuFileRoad : public testing::Test {
 protected:
  CuFileRoad() {
    ::setenv("WAYWISER_LIBCUFILE", WAYWISER_FAKE_CUFILE, 1);
    library_ = ::dlopen(WAYWISER_FAKE_CUFILE, RTLD_NOW);
    reaching = stream_.get();
    const auto tell = reinterpret_cast<void (*)(std::byte* (*)(std::byte*))>(::dlsym(library_, "fake_cufile_reach"));
    tell([](std::byte* at) {  // of several threads
      static std::mutex turn;
      const std::lock_guard guard(turn);
      return reaching->reach(Region{at, 1, gpu(0)});
    });
  }
  ~CuFileRoad() override {
    for (const char* name :
         {"WAYWISER_LIBCUFILE", "FAKE_CUFILE_MOST", "FAKE_CUFILE_ERROR", "FAKE_CUFILE_DRIVER", "FAKE_CUFILE_HOLD"})
      ::unsetenv(name);
  }

  int asked(const char* what) const { return reinterpret_cast<int (*)()>(::dlsym(library_, what))(); }
  FileOptions by(const std::string& way) const { return {.way = way, .gpus = platform_}; }
  Memory filled(const std::vector<std::byte>& bytes) {
    Memory memory = platform_->allocate(gpu(0), bytes.size(), Allocation::gpu);
    stream_->copy(memory.region().slice(0, bytes.size()), ConstRegion(bytes.data(), bytes.size(), host(0)));
    stream_->synchronize(Deadline::in(10));
    return memory;
  }
  std::vector<std::byte> bytes_of(Region memory) {
    std::vector<std::byte> bytes(memory.bytes);
    stream_->copy(region_of(bytes), memory);
    stream_->synchronize(Deadline::in(10));
    return bytes;
  }

  StorageFolder folder_;
  std::shared_ptr<Platform> platform_ = open_virtual_platform({.gpus = 1});
  std::unique_ptr<Stream> stream_ = platform_->open_stream(gpu(0));
  void* library_ = nullptr;
};

template <typename Call>
std::string reason(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr std::size_t whole_length = 1'000'003;

TEST_F(CuFileRoad, MovesAnyPartBetweenAFileAndAGpuInPiecesAndByShortMoves) {
  const std::vector<std::byte> bytes = storage_bytes(whole_length);
  const Memory given = filled(bytes);
  for (const char* most : {"1073741824", "7777"}) {
    ::setenv("FAKE_CUFILE_MOST", most, 1);
    File file = File::replace(folder_ / "a", by("cufile(chunk=64K,threads=3)"));
    file.write(0, ConstRegion(given.region().slice(0, 500'000)));
    file.write(500'000, ConstRegion(given.region().slice(500'000, whole_length - 500'000)));
    file.close();
    EXPECT_EQ(bytes_of_file(folder_ / "a"), bytes) << most;
    const File again = File::open(folder_ / "a", by("cufile(chunk=64K,threads=3)"));
    EXPECT_EQ(again.way(0, 10, gpu(0)), "cufile(chunk=64K,threads=3)");
    Memory into = platform_->allocate(gpu(0), whole_length, Allocation::gpu);
    for (const auto& [offset, count] :
         {std::pair<Bytes, Bytes>{0, whole_length}, {1, 1}, {4095, 200'000}, {whole_length - 3, 3}}) {
      File::open(folder_ / "a", by("cufile(chunk=64K,threads=3)")).read(offset, into.region().slice(0, count));
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
      const std::vector<std::byte> found = bytes_of(into.region().slice(0, count));
      EXPECT_TRUE(std::equal(found.begin(), found.end(), from)) << offset << " " << count << " " << most;
    }
  }
  EXPECT_EQ(asked("fake_cufile_live"), 0);
}

TEST_F(CuFileRoad, FailsWithPathOffsetAndReason) {
  const std::string path = (folder_ / "a").string();
  put_file(path, storage_bytes(10'000));
  const Memory into = platform_->allocate(gpu(0), 20'000, Allocation::gpu);
  File file = File::open(path, by("cufile"));
  EXPECT_NE(reason([&] { file.read(5'000, into.region().slice(0, 6'000)); }).find(path), std::string::npos);
  ::setenv("FAKE_CUFILE_ERROR", "-5009", 1);
  EXPECT_EQ(reason([&] { file.read(4096, into.region().slice(0, 100)); }),
            path + ": cannot read 100 bytes at 4096: cuFileRead: the GPU is not supported");
  ::unsetenv("FAKE_CUFILE_ERROR");
  ::setenv("FAKE_CUFILE_MOST", "0", 1);
  EXPECT_EQ(
      reason([&] { File::replace(folder_ / "b", by("cufile")).write(0, ConstRegion(into.region().slice(0, 9))); }),
      (folder_ / "b").string() +
          ": cannot write 9 bytes at 0: the rest of it was not written, and no reason was given");
  EXPECT_EQ(reason([&] { file.read(10'000, into.region().slice(0, 1)); }),
            path + ": cannot read 1 bytes at 10000: the file ends at 10000");
  std::vector<std::byte> here(10);
  EXPECT_EQ(reason([&] { file.read(0, region_of(here)); }), "the way that was set serves arrays in GPU memory alone");
}

TEST_F(CuFileRoad, SaysWhyItIsNotThere) {
  put_file(folder_ / "a", storage_bytes(10));
  ::setenv("WAYWISER_LIBCUFILE", "/nowhere/libcufile.so.0", 1);
  const std::string said = reason([&] { File::open(folder_ / "a", by("cufile")); });
  EXPECT_NE(said.find("cufile does not serve it: /nowhere/libcufile.so.0"), std::string::npos) << said;
  EXPECT_EQ(CuFileLibrary::usual().mode(), "unknown");
}

TEST_F(CuFileRoad, ServesGpusWhereThePlanSaysSoAndHostsGoTheirWay) {
  put_file(folder_ / "a", storage_bytes(100'000));
  const std::string storage = storage_of(StorageFile::for_reading(folder_ / "a"));
  const auto row = [&](const char* memory, std::vector<RankedWay> ways) {
    PlanRow made{{.operation = "file_read_cached", .memory = memory, .ranks = 1, .partner = storage}};
    made.to_bytes = no_end;
    made.ways = std::move(ways);
    return made;
  };
  Plan plan;
  plan.rows = {row("gpu", {{parse_way("cufile"), 0}}),
               row("host", {{parse_way("cufile"), 0}, {parse_way("buffered(threads=2)"), 1}})};
  write_json(folder_ / "plan.json", to_json(plan));
  File file = File::open(folder_ / "a", {.plan = FilePlan::of(folder_ / "plan.json"), .gpus = platform_});
  EXPECT_EQ(file.way(0, 10, gpu(0)), "cufile");
  EXPECT_EQ(file.way(0, 10), "buffered(threads=2)");
  const Memory on_gpu = platform_->allocate(gpu(0), 1'000, Allocation::gpu);
  std::vector<std::byte> here(1'000);
  const std::vector<FilePart> parts{{0, on_gpu.region().slice(0, 1'000)}, {1'000, region_of(here)}};
  const int before = asked("fake_cufile_calls");
  file.read(parts);
  EXPECT_EQ(asked("fake_cufile_calls"), before + 1);
  const std::vector<std::byte> wanted = bytes_of_file(folder_ / "a"), found = bytes_of(on_gpu.region().slice(0, 1'000));
  EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin()));
  EXPECT_TRUE(std::equal(here.begin(), here.end(), wanted.begin() + 1'000));
}

TEST_F(CuFileRoad, WhatAHangingWayHasNotBegunGoesByTheNextOne) {
  const std::vector<std::byte> bytes = storage_bytes(8 << 20);
  put_file(folder_ / "a", bytes);
  Plan plan;
  for (const char* work : {"file_read", "file_read_cached", "file_write"}) {
    PlanRow row{{.operation = work, .memory = "gpu", .ranks = 1}};
    row.key.partner = storage_of(StorageFile::for_reading(folder_ / "a"));
    row.to_bytes = no_end;
    row.ways = {{parse_way("cufile(chunk=1M,threads=1)"), 1}, {parse_way("cufile(chunk=2M,threads=1)"), 1}};
    row.expected = {{bytes.size(), 1e-3}};
    plan.rows.push_back(row);
  }
  write_json(folder_ / "plan.json", to_json(plan));
  const FileOptions options{.plan = FilePlan::of(folder_ / "plan.json"), .gpus = platform_};
  const Memory memory = platform_->allocate(gpu(0), bytes.size(), Allocation::gpu);
  const Region all_of_it = memory.region().slice(0, bytes.size());
  ::setenv("FAKE_CUFILE_HOLD", "4", 1);  // 1 MiB hangs, 7 MiB are four pieces of the other way
  File from = File::open(folder_ / "a", options), to = File::replace(folder_ / "b", options);
  from.read(0, all_of_it);
  EXPECT_TRUE(bytes_of(all_of_it) == bytes);
  to.write(0, ConstRegion(all_of_it));
  ::unsetenv("FAKE_CUFILE_HOLD");
  for (const File* file : {&from, &to}) EXPECT_EQ(file->way(0, 10, gpu(0)), "cufile(chunk=2M,threads=1)");
  to.close();
  EXPECT_TRUE(bytes_of_file(folder_ / "b") == bytes);
}

}  // namespace
}  // namespace waywiser
