#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

using Problems = std::vector<std::string>;  // the error text of each rank; empty: there were no errors
inline const Problems no_problems;

// Ranks for a test. They have their own job and runtime folder.
class TestRanks {
 public:
  explicit TestRanks(int size);
  TestRanks(const TestRanks&) = delete;
  TestRanks& operator=(const TestRanks&) = delete;
  ~TestRanks();

  JoinOptions options(int rank) const;
  Seconds timeout = 20;
  // Virtual GPUs of the machine that all ranks share. WAYWISER_TEST_GPUS=cuda: the GPUs of this machine instead; if it
  // has fewer, ranks share them.
  int virtual_gpus = 0;
  bool machines_apart = false;  // each rank believes that the others are on other machines
  int ranks_of_machine = 1;     // ranks on each machine, if machines are apart
  std::string secret;
  bool cuda_gpus = false;                     // use the GPUs of this machine
  std::optional<bool> kernels_on_shared_gpu;  // default: on CUDA GPUs only
  bool progress_thread = false;
  bool threads = false;  // of a rank's program may use different groups at once
  std::function<int(int rank)> max_ctas_of;
  std::function<std::shared_ptr<const Chooser>(int rank)> chooser_of;
  std::function<std::shared_ptr<Platform>(int rank)> platform_of;  // the platform of each rank, in place of the above
  std::function<std::string(int rank)> node_of;                    // fingerprint of its machine
  std::vector<std::vector<std::string>> no_peer_access;            // of the virtual GPUs, as VirtualMachine has it

  using Body = std::function<void(Group&)>;
  // Runs each rank as its own process. Returns the errors by rank; empty if each body returned.
  std::vector<std::string> in_processes(const Body& body) const;
  // Runs each rank as a thread of this process.
  std::vector<std::string> in_threads(const Body& body) const;

  // For tests that need more: forks `rank`, which exits with 0 when `body` returns and otherwise writes its error to a
  // pipe.
  struct Process {
    int id = -1;
    int output = -1;
  };
  Process start(int rank, const std::function<void(int rank)>& body) const;
  // The error of a process, empty if none; "signal 9" when it was killed. One that has not ended in time is killed.
  static std::string wait(Process process, Seconds patience = 600);

 private:
  int size_;
  std::string folder_, job_;
};

// Runs each rank in its own process with its own platform, like in_processes().
std::vector<std::string> on_platforms(int size, const std::function<std::shared_ptr<Platform>(int rank)>& platform,
                                      const TestRanks::Body& body, std::shared_ptr<const Chooser> plan = nullptr);

// The GPU of this rank. If there are fewer GPUs than ranks, ranks share them.
Place gpu_of_rank(const Group& group);
// WAYWISER_TEST_GPUS=cuda.
bool tests_use_cuda();

// Found without CUDA: a process must not use CUDA before it forks.
int cuda_devices_here();

// Throws with `what` if the condition is false: for expectations of a rank in its own process.
void require_that(bool condition, const std::string& what);

}  // namespace waywiser
