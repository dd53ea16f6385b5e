#include "waywiser/measure/peer_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

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
  const Json run{{"do", "run"},      {"seconds", 1}, {"path", to_json(path)}, {"operation", "latency"}, {"bytes", 8},
                 {"repetitions", 1}, {"seed", 0}};
  const std::vector<std::pair<std::string, Json>> changes{
      {"bytes", 8}, {"bytes", -1}, {"repetitions", 0}, {"operation", "loaded"}, {"path", "no"}};
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
