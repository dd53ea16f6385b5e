#include "waywiser/measure/peer_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/platform_choice.hpp"
#include "waywiser/path/path.hpp"
#include "waywiser/transport/memory_message.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 20;

Json answer_to(PeerProcess& peer, const Json& command, bool with_page = true) {
  const Descriptor page(::memfd_create("page", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(page.number(), 4096), 0);
  const std::vector<int> numbers = with_page ? std::vector<int>{page.number()} : std::vector<int>{};
  peer.channel().send(command, Deadline::in(patience), numbers);
  return peer.channel().receive(Deadline::in(patience)).first;
}

Json begin() { return {{"do", "begin"}, {"seconds", 20}, {"platform", to_json(PlatformChoice{})}}; }

TEST(PeerProcess, BeginsAndEndsWithItsOwner) {
  pid_t id = -1;
  {
    PeerProcess peer(WAYWISER_PEER_PATH);
    id = peer.id();
    const Json answer = answer_to(peer, begin());
    ASSERT_TRUE(answer.contains("answer")) << answer;
    EXPECT_EQ(answer["answer"]["process"], id);
  }
  EXPECT_EQ(::kill(id, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

std::string all_from(const Descriptor& line) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(line.number(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  return text;
}

TEST(PeerProgram, SeesNothingOfTheJobOfItsOwner) {
  const std::string script = ::testing::TempDir() + "/show_environment." + std::to_string(::getpid());
  std::ofstream(script) << "#!/bin/sh\nenv >&$1\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  for (const char* name : {"WAYWISER_ROOT", "OMPI_COMM_WORLD_RANK", "NOT_OF_A_JOB"}) ::setenv(name, "1", 1);
  auto [mine, theirs] = PeerChannel::socket_pair();
  const PeerProgram program(script, theirs, {"GIVEN=2"});
  theirs = Descriptor();
  const std::string seen = all_from(mine);
  for (const char* name : {"WAYWISER_ROOT", "OMPI_COMM_WORLD_RANK", "NOT_OF_A_JOB"}) ::unsetenv(name);
  std::filesystem::remove(script);
  EXPECT_EQ(seen.find("WAYWISER_ROOT"), std::string::npos);
  EXPECT_EQ(seen.find("OMPI_COMM_WORLD_RANK"), std::string::npos);
  EXPECT_NE(seen.find("NOT_OF_A_JOB=1\n"), std::string::npos);
  EXPECT_NE(seen.find("GIVEN=2\n"), std::string::npos);
}

TEST(PeerProcess, EndsWhenItsChannelIsClosed) {
  auto [mine, theirs] = PeerChannel::socket_pair();
  const pid_t id = ::fork();
  if (id == 0) {
    ::dup2(theirs.number(), 3);
    ::execl(WAYWISER_PEER_PATH, WAYWISER_PEER_PATH, "3", nullptr);
    ::_exit(99);
  }
  theirs = Descriptor();
  mine = Descriptor();
  int status = -1;
  ASSERT_EQ(::waitpid(id, &status, 0), id);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(PeerProcess, RefusesWrongCommandsWithAReason) {
  Json foreign = begin(), late = begin(), no_machine = begin();
  foreign["do"] = "dance";
  no_machine["platform"].erase("machine");
  late.erase("seconds");
  for (const Json& command : {foreign, no_machine, late, Json(7), Json::array(), Json{{"do", 1}}}) {
    PeerProcess peer(WAYWISER_PEER_PATH);
    const Json answer = answer_to(peer, command);
    EXPECT_TRUE(answer.contains("error")) << command << " -> " << answer;
  }
  PeerProcess peer(WAYWISER_PEER_PATH);
  EXPECT_TRUE(answer_to(peer, begin(), false).contains("error"));
}

TEST(PeerProcess, RefusesARunBeforeItIsOpen) {
  const Path path{"host_copy", host(0), host(0), 2, {{"stores", "temporal"}, {"threads", "1"}}};
  const Json run{{"do", "run"},
                 {"seconds", 1},
                 {"path", to_json(path)},
                 {"operation", "latency"},
                 {"bytes", 8},
                 {"repetitions", 1},
                 {"seed", 0},
                 {"first", 0},
                 {"spin_cpus", {-1, -1}}};
  const std::vector<std::pair<std::string, Json>> changes{
      {"bytes", 8}, {"bytes", -1}, {"repetitions", 0}, {"operation", "dance"}, {"path", "no"}, {"spin_cpus", {-2, 0}}};
  for (const auto& [key, value] : changes) {
    PeerProcess peer(WAYWISER_PEER_PATH);
    answer_to(peer, begin());
    Json command = run;
    command[key] = value;
    EXPECT_TRUE(answer_to(peer, command, false).contains("error")) << command;
  }
}

TEST(PeerProcess, NamesAProgramThatCannotBeStarted) {
  try {
    PeerProcess peer("/nowhere/waywiser-peer");
    FAIL() << "started";
  } catch (const Error& problem) {
    EXPECT_EQ(problem.kind(), ErrorKind::unavailable);
    EXPECT_NE(std::string(problem.what()).find("/nowhere/waywiser-peer: No such file"), std::string::npos);
  }
}

TEST(MemoryMessage, TravelsAndIsChecked) {
  const auto platform = open_host_platform();
  const Memory memory = platform->allocate(host(0), 5000, Allocation::shared);
  const MemoryHandle handle = platform->export_memory(memory);
  const Json good = to_json(handle);
  std::vector<Descriptor> descriptors;
  EXPECT_THROW(memory_handle_from_json(good, descriptors), Error);  // its descriptor is missing
  descriptors.push_back(handle.descriptor.duplicate());
  const MemoryHandle back = memory_handle_from_json(good, descriptors);
  EXPECT_EQ(back.bytes, handle.bytes);
  EXPECT_TRUE(back.descriptor.open() && descriptors.empty());
  const std::vector<std::pair<std::string, Json>> changes{
      {"kind", "paper"}, {"place", "moon0"}, {"bytes", -1}, {"opaque", {1, 2}}, {"opaque", std::vector<int>(64, 256)},
      {"descriptor", 1}};
  for (const auto& [key, value] : changes) {
    Json bad = good;
    bad[key] = value;
    descriptors.clear();
    descriptors.push_back(handle.descriptor.duplicate());
    EXPECT_THROW(memory_handle_from_json(bad, descriptors), Error) << key << value;
  }
}

// The owner's mapping may go: a descriptor keeps the memory until the last one is closed.
TEST(MemoryMessage, OutlivesItsOwner) {
  const auto platform = open_host_platform();
  MemoryHandle handle;
  {
    const Memory owner = platform->allocate(host(0), 64, Allocation::shared);
    owner.region().data[63] = std::byte{7};
    handle = platform->export_memory(owner);
  }
  const Memory opened = platform->open_memory(handle);
  EXPECT_EQ(opened.region().data[63], std::byte{7});
  handle.descriptor = Descriptor();
  EXPECT_THROW(platform->open_memory(handle), Error);
}

}  // namespace
}  // namespace waywiser
