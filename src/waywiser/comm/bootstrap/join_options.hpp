#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/message/on_failure.hpp"

namespace waywiser {

class Chooser;
class Platform;

// How to become a rank of a group. An empty option takes its value from the environment, or the default.
struct JoinOptions {
  // What the launcher says (read_launch()), or set by the program: several ranks can be threads of one process.
  std::optional<Launch> launch;
  // Rank 0 calls it when it listens, so that the program can tell the others the address: port 0 becomes a free port.
  std::function<void(const Endpoint& root)> announce;
  // The limit of every wait, in seconds. Default: WAYWISER_TIMEOUT, or 60.
  std::optional<Seconds> timeout;
  // The devices of this process; nullptr: host memory only.
  std::shared_ptr<Platform> platform;
  // Used without a platform: opens one when the first GPU array comes.
  std::function<std::shared_ptr<Platform>()> open_platform;
  // Polled now and then in long waits; true ends the wait with `interrupted`.
  std::function<bool()> interrupted;
  // After a failed operation on this rank's GPU, either every later call on the GPU fails too, or the process ends.
  // Default: WAYWISER_ON_FAILURE, or raise.
  std::optional<OnFailure> on_failure;
  // Whether to encrypt traffic to other machines; must be equal in all ranks. Default: WAYWISER_ENCRYPT, or no.
  std::optional<bool> encrypt;
  // Whether kernels also serve ranks that share a GPU, for tests with one GPU: the GPU runs the processes in turns of
  // some milliseconds. Default: WAYWISER_SHARED_GPU, or no: their arrays go through host memory.
  std::optional<bool> kernels_on_shared_gpu;
  // Whether a thread advances started operations (Mode::begin) while the program computes. It also starts with the
  // first operation on a stream in which the host takes part. Default: on if WAYWISER_PROGRESS_THREAD=on, else off.
  std::optional<bool> progress_thread;
  // The only core of the progress thread. Default: WAYWISER_PROGRESS_CORE, or all cores of the process.
  std::optional<int> progress_core;
  // Whether threads of this program may use different groups of the rank at once. Two threads in one group are refused
  // even so. A call that waits then gives way to those of other threads, which takes time.
  bool threads = false;
  // The most blocks of a kernel that carries out a collective of GPU arrays, so that kernels of the program have the
  // other multiprocessors (NCCL's name); 0: no limit. The least of all ranks that have one counts. Default:
  // WAYWISER_MAX_CTAS, or 0.
  std::optional<int> max_ctas;
  // How long other ranks may take to release the memory of a failed call, in seconds. Then this process ends.
  Seconds letting_go = 5;
  // The plan, equal in all ranks: it chooses the paths of messages. Default: the plan of WAYWISER_PLAN, or none.
  std::shared_ptr<const Chooser> chooser;
  // Fingerprint of this machine's topology. Computed if the plan leads to several types of nodes.
  std::optional<std::string> node = {};
};

}  // namespace waywiser
