#include "waywiser/comm/bootstrap/runtime_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/comm/with_runtime_folder.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

namespace fs = std::filesystem;

class RuntimeFolder : public WithRuntimeFolder {
 protected:
  void SetUp() override {
    WithRuntimeFolder::SetUp();
    ::unsetenv("WAYWISER_RUNTIME_DIR");
  }
  static fs::path fallback() { return "/tmp/waywiser-" + std::to_string(::geteuid()); }
};

TEST_F(RuntimeFolder, LiesInTheFolderOfTheSession) {
  const WithVariable session("XDG_RUNTIME_DIR", folder_.string());
  EXPECT_EQ(runtime_folder(), folder_ / "waywiser");
  struct stat facts{};
  ASSERT_EQ(::stat((folder_ / "waywiser").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0700u);
}

// Faults: strangers X
TEST_F(RuntimeFolder, ASessionFolderThatOthersMayWriteIsPassedBy) {
  fs::permissions(folder_, fs::perms::others_all, fs::perm_options::add);
  const WithVariable session("XDG_RUNTIME_DIR", folder_.string());
  EXPECT_EQ(runtime_folder(), fallback());
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RuntimeFolder, ASessionFolderOfAnotherUserIsPassedByAndStaysAsItWas) {
  constexpr uid_t other = 12345;
  if (::chown(folder_.c_str(), other, other) != 0) GTEST_SKIP() << "only root can give a folder away";
  const WithVariable session("XDG_RUNTIME_DIR", folder_.string());
  EXPECT_EQ(runtime_folder(), fallback());
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RuntimeFolder, ASessionFolderThatCannotBeLookedIntoIsPassedBy) {
  const WithVariable session("XDG_RUNTIME_DIR", (folder_ / "file" / "below").string());
  std::ofstream(folder_ / "file") << "no folder";
  EXPECT_EQ(runtime_folder(), fallback());
}

class Sweep : public WithRuntimeFolder {};

TEST_F(Sweep, TakesWhatDeadProcessesHaveLeftAndNothingElse) {
  const std::string alive = std::to_string(::getpid()), dead = "4194305";  // above the largest number of a process
  for (const std::string& name : {"rank-" + dead + "-0.sock", "handle-" + dead + "-0-1-2.sock",
                                  "new-" + dead + "-0.sock", std::string("job-0123.sock"), "rank-" + alive + "-0.sock"})
    static_cast<void>(listen_at(folder_ / name));
  const Descriptor elsewhere = listen_at(folder_ / ("rank-" + dead + "-7.sock"));  // by a process of another space
  const Descriptor forming = listen_at(meeting_path("a job that forms"));
  std::ofstream(folder_ / "job-0123456789ab") << "4711 a secret of an earlier version";
  std::ofstream(folder_ / "mine") << "of somebody else";
  sweep_runtime_folder();
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_)) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"rank-" + alive + "-0.sock", "rank-" + dead + "-7.sock", "mine",
                                         meeting_path("a job that forms").filename()}));
}

TEST_F(Sweep, SocketsAreThisUsersOnly) {
  const Descriptor listener = listen_at(folder_ / "rank-1-0.sock");
  struct stat facts{};
  ASSERT_EQ(::stat((folder_ / "rank-1-0.sock").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  EXPECT_TRUE(is_of_this_user(connect_at(folder_ / "rank-1-0.sock")));
}

}  // namespace
}  // namespace waywiser
