#include "tests/comm/test_ranks.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"
#include "waywiser/comm/session/process_end.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {

TestRanks::TestRanks(int size) : size_(size) {
  std::string name = (std::filesystem::temp_directory_path() / "waywiser-test-XXXXXX").string();
  folder_ = ::mkdtemp(name.data());
  ::setenv("WAYWISER_RUNTIME_DIR", folder_.c_str(), 1);
  job_ = "test";
}

TestRanks::~TestRanks() {
  ::unsetenv("WAYWISER_RUNTIME_DIR");
  std::filesystem::remove_all(folder_);
}

JoinOptions TestRanks::options(int rank) const {
  JoinOptions options;
  options.launch = Launch{"test", rank, size_, job_, {}, ""};
  options.launch->secret = secret;
  if (machines_apart) options.launch->machine = "machine " + std::to_string(rank / ranks_of_machine);
  options.timeout = timeout;
  options.kernels_on_shared_gpu = kernels_on_shared_gpu.value_or(false);
  if (progress_thread) options.progress_thread = true;
  options.threads = threads;
  VirtualMachine machine;
  machine.gpus = virtual_gpus;
  machine.no_peer_access = no_peer_access;
  if (cuda_gpus) options.platform = open_cuda_platform();
  if (virtual_gpus != 0 && tests_use_cuda()) {
    options.platform = open_cuda_platform();
    options.kernels_on_shared_gpu = kernels_on_shared_gpu.value_or(true);
  } else if (virtual_gpus != 0) {
    options.platform = open_virtual_platform(machine);
  }
  if (platform_of) options.platform = platform_of(rank);
  if (max_ctas_of) options.max_ctas = max_ctas_of(rank);
  if (chooser_of) options.chooser = chooser_of(rank);
  if (node_of) options.node = node_of(rank);
  return options;
}

namespace {

// What the expectations of this process that have failed since the first `before` results said.
std::string failed_expectations(const testing::TestResult* result, int before) {
  std::string text;
  for (int i = before; result != nullptr && i < result->total_part_count(); ++i)
    if (const testing::TestPartResult& part = result->GetTestPartResult(i); part.failed())
      text += (text.empty() ? "" : "\n") + std::string(part.summary());
  return text;
}

}  // namespace

TestRanks::Process TestRanks::start(int rank, const std::function<void(int rank)>& body) const {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw Error(ErrorKind::io, "pipe: " + last_system_error());
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const testing::TestResult* result = test == nullptr ? nullptr : test->result();
  const int before = result == nullptr ? 0 : result->total_part_count();
  const pid_t id = ::fork();
  if (id != 0) {
    ::close(ends[1]);
    return {id, ends[0]};
  }
  ::close(ends[0]);
  std::string text;
  try {
    body(rank);
  } catch (const std::exception& problem) {
    text = problem.what();
    if (text.empty()) text = "an exception without words";
  }
  if (text.empty()) text = failed_expectations(result, before);
  if (!text.empty()) {
    static_cast<void>(!::write(ends[1], text.data(), text.size()));
    ::_exit(1);
  }
  end_kept_groups();
  ::_exit(0);
}

std::string TestRanks::wait(Process process, Seconds patience) {
  std::string text;
  std::array<char, 512> part{};
  const Deadline deadline = Deadline::in(patience);
  bool in_time = true;
  for (ssize_t got = 1; in_time && got > 0;) {
    in_time = wait_for_socket(process.output, POLLIN, deadline);
    if (in_time && (got = ::read(process.output, part.data(), part.size())) > 0)
      text.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(process.output);
  if (!in_time) ::kill(process.id, SIGKILL);
  int status = 0;
  ::waitpid(process.id, &status, 0);
  if (!in_time) return "it has not ended in time" + (text.empty() ? "" : ": " + text);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return text.empty() && status != 0 ? "exit " + std::to_string(WEXITSTATUS(status)) : text;
}

std::vector<std::string> TestRanks::in_processes(const Body& body) const {
  std::vector<Process> processes;
  for (int rank = 0; rank < size_; ++rank)
    processes.push_back(start(rank, [&](int self) {
      Group group = Group::join(options(self));
      body(group);
    }));
  std::vector<std::string> problems;
  for (const Process& process : processes)
    if (const std::string problem = wait(process); !problem.empty())
      problems.push_back("rank " + std::to_string(&process - processes.data()) + ": " + problem);
  return problems;
}

std::vector<std::string> TestRanks::in_threads(const Body& body) const {
  std::vector<std::string> texts(static_cast<std::size_t>(size_)), problems;
  std::vector<std::thread> started;
  for (int rank = 0; rank < size_; ++rank)
    started.emplace_back([&, rank] {
      try {
        Group group = Group::join(options(rank));
        body(group);
      } catch (const std::exception& problem) {
        texts[static_cast<std::size_t>(rank)] = problem.what();
      }
    });
  for (std::thread& thread : started) thread.join();
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    if (!texts[rank].empty()) problems.push_back("rank " + std::to_string(rank) + ": " + texts[rank]);
  return problems;
}

std::vector<std::string> on_platforms(int size, const std::function<std::shared_ptr<Platform>(int rank)>& platform,
                                      const TestRanks::Body& body, std::shared_ptr<const Chooser> plan) {
  TestRanks ranks(size);
  ranks.platform_of = platform;
  ranks.chooser_of = [plan](int) { return plan; };
  return ranks.in_processes(body);
}

bool tests_use_cuda() {
  const char* gpus = std::getenv("WAYWISER_TEST_GPUS");
  return gpus != nullptr && gpus == std::string_view("cuda");
}

Place gpu_of_rank(const Group& group) { return gpu(group.rank() % group.platform()->gpu_count()); }

int cuda_devices_here() {
  int count = 0;
  while (std::filesystem::exists("/dev/nvidia" + std::to_string(count))) ++count;
  return count;
}

void require_that(bool condition, const std::string& what) {
  if (!condition) throw Error(ErrorKind::corrupt, "expected: " + what);
}

}  // namespace waywiser
