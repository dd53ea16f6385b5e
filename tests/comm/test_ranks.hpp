#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

using Problems = std::vector<std::string>;  // of each rank, what its error said; empty: there were none
inline const Problems no_problems;

// Ranks for a test, with a job and a runtime folder of their own.
class TestRanks {
 public:
  explicit TestRanks(int size);
  TestRanks(const TestRanks&) = delete;
  TestRanks& operator=(const TestRanks&) = delete;
  ~TestRanks();

  JoinOptions options(int rank) const;
  Seconds timeout = 20;
  // Of the machine that all ranks share. WAYWISER_TEST_GPUS=cuda: instead those of this machine, which ranks share
  // where it has fewer.
  int virtual_gpus = 0;
  bool machines_apart = false;  // each rank takes the others for ranks of other machines
  int ranks_of_machine = 1;     // that do not, if machines are apart
  std::string secret;
  bool cuda_gpus = false;                     // instead: those of this machine
  std::optional<bool> kernels_on_shared_gpu;  // default: on CUDA GPUs only
  bool progress_thread = false;
  std::function<std::shared_ptr<const Chooser>(int rank)> chooser_of;
  std::function<std::shared_ptr<Platform>(int rank)> platform_of;  // instead: what each rank has
  std::function<std::string(int rank)> node_of;                    // fingerprint of its machine
  std::vector<std::vector<std::string>> no_peer_access;            // of the virtual GPUs, as VirtualMachine has it

  using Body = std::function<void(Group&)>;
  // Each rank is a process of its own. Empty: each body returned; else what the ranks' errors said, by rank.
  std::vector<std::string> in_processes(const Body& body) const;
  // Each rank is a thread of this process.
  std::vector<std::string> in_threads(const Body& body) const;

  // For tests that do more than that: forks `rank`; it exits with 0 when `body` returns, and writes its error to a
  // pipe.
  struct Process {
    int id = -1;
    int output = -1;
  };
  Process start(int rank, const std::function<void(int rank)>& body) const;
  // The error of a process, empty if none; "signal 9" when it was killed.
  static std::string wait(Process process);

 private:
  int size_;
  std::string folder_, job_;
};

// Each rank in a process of its own, with a platform of its own; as in_processes().
std::vector<std::string> on_platforms(int size, const std::function<std::shared_ptr<Platform>(int rank)>& platform,
                                      const TestRanks::Body& body, std::shared_ptr<const Chooser> plan = nullptr);

// The GPU of this rank, which it shares where there are fewer than ranks.
Place gpu_of_rank(const Group& group);
// WAYWISER_TEST_GPUS=cuda.
bool tests_use_cuda();

// Found without CUDA, which no process may have touched before it is forked.
int cuda_devices_here();

// Throws with `what` unless it is true: the expectation of a rank in a process of its own.
void require_that(bool condition, const std::string& what);

}  // namespace waywiser
