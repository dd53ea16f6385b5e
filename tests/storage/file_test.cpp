#include "waywiser/storage/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/storage/storage_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/policy/plan.hpp"
#include "waywiser/storage/file_ways.hpp"
#include "waywiser/storage/mount.hpp"
#include "waywiser/storage/replaced_file.hpp"
#include "waywiser/storage/storage_file.hpp"

namespace waywiser {
namespace {

template <typename Call>
ErrorKind kind_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing is thrown";
  return ErrorKind::corrupt;
}

TEST(File, IsReplacedWholeOrNotAtAll) {
  const StorageFolder folder;
  std::vector<std::byte> before = storage_bytes(5000), after = storage_bytes(70'001, 2);
  put_file(folder / "a", before);
  {
    File file = File::replace(folder / "a");
    file.write(0, region_of(after));
    EXPECT_EQ(bytes_of_file(folder / "a"), before);
    EXPECT_LE(folder.files(), 2u);  // it may have a temporary name
  }
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(bytes_of_file(folder / "a"), before);

  File file = File::replace(folder / "a");
  file.write(0, region_of(after));
  file.close();
  EXPECT_EQ(bytes_of_file(folder / "a"), after);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(File, IsReplacedUnderATemporaryNameWhereTheFileSystemHasNoFilesWithoutOne) {
  const StorageFolder folder;
  put_file(folder / "a", storage_bytes(5000));
  const std::vector<std::byte> after = storage_bytes(70'001, 2);
  for (const bool committed : {false, true}) {
    ReplacedFile target(folder / "a");
    const StorageFile file = target.make(true);
    EXPECT_EQ(folder.files(), 2u);
    file.transfer(FileUse::write, file.cached_descriptor(),
                  {0, {const_cast<std::byte*>(after.data()), after.size(), host(0)}});
    if (committed) target.commit(file);
  }
  EXPECT_EQ(bytes_of_file(folder / "a"), after);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(File, OfAKilledProcessLeavesNothingBehind) {
  const StorageFolder folder;
  const std::vector<std::byte> before = storage_bytes(5000);
  std::vector<std::byte> after = storage_bytes(70'001, 2);
  put_file(folder / "a", before);
  const int probe = ::open((folder / ".").c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (probe < 0) GTEST_SKIP() << "this file system has no files without a name";
  ::close(probe);
  const pid_t child = ::fork();
  if (child == 0) {
    File file = File::replace(folder / "a");
    file.write(0, region_of(after));
    ::raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(bytes_of_file(folder / "a"), before);
}

TEST(File, ACallOfAnotherThreadEndsBeforeTheFile) {
  const StorageFolder folder;
  const std::vector<std::byte> bytes = storage_bytes(1 << 20);
  put_file(folder / "a", bytes);
  for (int round = 0; round < 100; ++round) {
    File file = File::open(folder / "a", {.way = "buffered(threads=2)"});
    std::atomic<bool> begun = false;
    std::vector<std::byte> into(bytes.size());
    std::thread other([&] {
      EXPECT_EQ(kind_of([&] {
                  for (;;) {
                    file.read(0, region_of(into));
                    begun = true;
                  }
                }),
                ErrorKind::invalid_input);
    });
    while (!begun) std::this_thread::yield();
    if (round % 2 == 0)
      file.discard();
    else
      file.close();
    other.join();
    EXPECT_EQ(into, bytes);
  }
}

TEST(File, IsNotReplacedAfterAWriteThatFailed) {
  const StorageFolder folder;
  std::vector<std::byte> before = storage_bytes(5000), after = storage_bytes(4096, 2);
  put_file(folder / "a", before);
  File file = File::replace(folder / "a", {.way = "buffered"});
  file.write(0, region_of(after));
  const ConstRegion unreadable{nullptr, 4096, host(0)};  // EFAULT
  EXPECT_EQ(kind_of([&] { file.write(4096, unreadable); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { file.write(4096, region_of(after)); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { file.close(); }), ErrorKind::io);
  EXPECT_EQ(bytes_of_file(folder / "a"), before);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(File, KeepsThePermissionsAndFollowsALink) {
  const StorageFolder folder;
  put_file(folder / "a", storage_bytes(10));
  std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_read);
  std::filesystem::create_symlink(folder / "a", folder / "link");
  std::vector<std::byte> after = storage_bytes(20, 2);
  File file = File::replace(folder / "link");
  file.write(0, region_of(after));
  file.close();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(bytes_of_file(folder / "a"), after);
  EXPECT_EQ(std::filesystem::status(folder / "a").permissions(), std::filesystem::perms::owner_read);
}

TEST(File, RefusesWhatItIsNotOpenFor) {
  const StorageFolder folder;
  std::vector<std::byte> bytes = storage_bytes(10);
  put_file(folder / "a", bytes);
  File file = File::open(folder / "a");
  EXPECT_EQ(kind_of([&] { file.write(0, region_of(bytes)); }), ErrorKind::invalid_input);
  file.close();
  EXPECT_EQ(kind_of([&] { file.read(0, region_of(bytes)); }), ErrorKind::invalid_input);
  EXPECT_EQ(kind_of([&] { File::open(folder / "none"); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { File::open("/dev/null"); }), ErrorKind::invalid_input);
  EXPECT_EQ(kind_of([&] { File::replace("/dev/null"); }), ErrorKind::invalid_input);
  EXPECT_EQ(kind_of([&] { File::replace(folder / "none/a"); }), ErrorKind::io);
  EXPECT_EQ(kind_of([&] { File::open(folder / "a", {.way = "tape"}); }), ErrorKind::invalid_input);
}

PlanRow row(FileWork work, Bytes from, Bytes to, const char* way, const std::string& storage) {
  PlanRow made{{.operation = std::string(name(work)), .memory = "host", .ranks = 1, .partner = storage}};
  made.from_bytes = from;
  made.to_bytes = to;
  made.ways = {{parse_way(way), 0}, {parse_way("buffered(threads=3)"), 1.5}};
  return made;
}

TEST(File, TakesTheWayOfThePlanForItsFileSystemAndSize) {
  const StorageFolder folder;
  put_file(folder / "a", storage_bytes(100'000));
  const std::string storage = storage_of(StorageFile::for_reading(folder / "a"));
  Plan plan;
  plan.rows = {row(FileWork::read_cached, 0, 4096, "buffered(threads=2)", storage),
               row(FileWork::read_cached, 4097, no_end, "mmap(threads=4)", storage),
               row(FileWork::write, 0, no_end, "mmap", storage),
               row(FileWork::read_cached, 0, no_end, "direct", "storage nfs /elsewhere")};
  write_json(folder / "plan.json", to_json(plan));
  const FileOptions options{FilePlan::of(folder / "plan.json")};
  const File file = File::open(folder / "a", options);
  EXPECT_EQ(file.way(0, 4096), "buffered(threads=2)");
  EXPECT_EQ(file.way(0, 4097), "mmap(threads=4)");
  testing::internal::CaptureStderr();
  EXPECT_EQ(File::replace(folder / "b", options).way(0, 100), "buffered(threads=3)");
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("file_write by mmap, which the plan has from 0 on, does not run"), std::string::npos) << told;
}

// Calls for `parts` parts into memory of `place`.
void leave_a_slow_way(Place place, std::size_t parts) {
  const StorageFolder folder;
  std::vector<std::byte> bytes = storage_bytes(8 << 20);
  put_file(folder / "a", bytes);
  Plan plan;
  plan.rows = {
      row(FileWork::read_cached, 0, no_end, "mmap(threads=1)", storage_of(StorageFile::for_reading(folder / "a")))};
  plan.rows[0].key.memory = place.is_gpu() ? "gpu" : "host";
  plan.rows[0].expected = {{8 << 20, 1e-9}};  // no machine reads that fast
  write_json(folder / "plan.json", to_json(plan));
  const std::shared_ptr<Platform> platform = open_virtual_platform({.gpus = 1});
  const Memory memory =
      platform->allocate(place, bytes.size(), place.is_gpu() ? Allocation::gpu : Allocation::pageable);
  File file = File::open(folder / "a", {.plan = FilePlan::of(folder / "plan.json"), .gpus = platform});
  const Bytes each = bytes.size() / parts;
  std::vector<FilePart> wanted;
  for (std::size_t i = 0; i < parts; ++i) wanted.push_back({i * each, memory.region().slice(i * each, each)});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 1'000'000 && file.way(0, each, place) == "mmap(threads=1)"; ++i) file.read(wanted);
  EXPECT_EQ(file.way(0, each, place), "buffered(threads=3)");
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("file_read_cached by mmap(threads=1) takes "), std::string::npos) << told;
  file.read(wanted);
  std::vector<std::byte> into(bytes.size());
  const auto stream = platform->open_stream(gpu(0));
  stream->copy(region_of(into), memory.region().slice(0, into.size()));
  stream->synchronize(Deadline::in(10));
  EXPECT_EQ(into, bytes);
}

TEST(File, LeavesAWayThatTakesMuchLongerThanThePlanSays) {
  leave_a_slow_way(host(0), 1);
  leave_a_slow_way(host(0), defaults::file_many);
  leave_a_slow_way(gpu(0), 1);
}

TEST(File, ALongPartComesInSections) {
  const StorageFolder folder;
  std::vector<std::byte> bytes = storage_bytes((9 << 20) + 5001);
  put_file(folder / "a", bytes);
  Plan plan;
  const std::string storage = storage_of(StorageFile::for_reading(folder / "a"));
  for (const FileWork work : {FileWork::read, FileWork::read_cached, FileWork::write}) {
    plan.rows.push_back(row(work, 0, no_end, "buffered", storage));
    plan.rows.back().expected = {{1 << 20, 0.1}};  // so 4 MiB a section
  }
  write_json(folder / "plan.json", to_json(plan));
  const FileOptions options{.plan = FilePlan::of(folder / "plan.json")};
  std::vector<std::byte> into(bytes.size() - 1000);
  File::open(folder / "a", options).read(1000, region_of(into));
  EXPECT_TRUE(std::equal(into.begin(), into.end(), bytes.begin() + 1000));
  File copy = File::replace(folder / "b", options);
  copy.write(0, region_of(bytes));
  copy.close();
  EXPECT_TRUE(bytes_of_file(folder / "b") == bytes);
}

TEST(Mount, IsTheLongestThatHoldsThePath) {
  const std::string mounts =
      "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
      "22 21 0:30 / /data rw shared:2 master:1 - tmpfs tmpfs rw\n"
      "23 22 0:31 / /data/big\\040disk rw - xfs /dev/nvme0n1 rw\n"
      "24 21 0:32 / /data rw - nfs4 server:/data rw\n";
  EXPECT_EQ(mount_of(mounts, "/home/a"), "ext4 /");
  EXPECT_EQ(mount_of(mounts, "/data/a"), "nfs4 /data");
  EXPECT_EQ(mount_of(mounts, "/database/a"), "ext4 /");
  EXPECT_EQ(mount_of(mounts, "/data/big disk/a"), "xfs /data/big disk");
}

}  // namespace
}  // namespace waywiser
