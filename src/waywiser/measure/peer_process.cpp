#include "waywiser/measure/peer_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int channel_number = 3, keys_number = 4, first_free_number = 5;

std::string name_part(const std::string& entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> entries = changes;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string name = name_part(*entry);
    const bool changed = std::ranges::any_of(changes, [&](const auto& change) { return name_part(change) == name; });
    if (!changed && !tells_of_a_job(name)) entries.emplace_back(*entry);
  }
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& entry : texts) list.push_back(entry.data());
  list.push_back(nullptr);
  return list;
}

// A pipe with the keys in it; nothing where there are none. Not in the way of the numbers that the program gets.
Descriptor pipe_with(const Seal& seal) {
  if (!seal) return {};
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(ErrorKind::io, "pipe failed: " + last_system_error());
  const Descriptor out(ends[0]), in(ends[1]);
  std::vector<std::byte> keys = seal.packed();
  const bool written = ::write(in.number(), keys.data(), keys.size()) == static_cast<ssize_t>(keys.size());
  wipe(keys);
  Descriptor read_end(::fcntl(out.number(), F_DUPFD_CLOEXEC, first_free_number));
  if (!written || !read_end.open()) throw Error(ErrorKind::io, "keys for the peer process: " + last_system_error());
  return read_end;
}

// Standard output is for results of the first process: the peer's goes to standard error.
pid_t spawn(const std::string& program, std::vector<std::string> environment, int socket, const Descriptor& keys) {
  std::vector<std::string> words{program, std::to_string(channel_number)};
  if (keys.open()) words.push_back(std::to_string(keys_number));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, socket, channel_number);
  if (keys.open()) ::posix_spawn_file_actions_adddup2(&actions, keys.number(), keys_number);
  pid_t id = -1;
  const int problem =
      ::posix_spawn(&id, program.c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0)
    throw Error(ErrorKind::unavailable, "cannot start the peer process " + program + ": " + std::strerror(problem));
  return id;
}

}  // namespace

PeerProgram::PeerProgram(const std::filesystem::path& program, const Descriptor& line,
                         const std::vector<std::string>& environment, const Seal& seal)
    : id_(spawn(program.string(), environment_with(environment), line.number(), pipe_with(seal))) {}

PeerProgram::~PeerProgram() {
  ::kill(id_, SIGKILL);
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

PeerProcess::PeerProcess(const std::filesystem::path& program, const std::vector<std::string>& environment)
    : PeerProcess(program, environment, PeerChannel::socket_pair()) {}

PeerProcess::PeerProcess(const std::filesystem::path& program, const std::vector<std::string>& environment,
                         std::pair<Descriptor, Descriptor> ends)
    : channel_(std::move(ends.first)), program_(program, ends.second, environment) {}

}  // namespace waywiser
