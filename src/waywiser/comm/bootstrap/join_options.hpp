#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/session/on_failure.hpp"

namespace waywiser {

class Chooser;
class Platform;

// How to become a rank of a group.
struct JoinOptions {
  // What the launcher said (read_launch()), or made by hand: several ranks can be threads of one process.
  std::optional<Launch> launch;
  // Called by rank 0 when it listens, for others who are told where by this program: a root with port 0 is any port.
  std::function<void(const Endpoint& root)> announce;
  // Of every wait, in seconds. WAYWISER_TIMEOUT, or 60.
  std::optional<Seconds> timeout;
  // Devices of this process; host memory only when there is none.
  std::shared_ptr<Platform> platform;
  // Where there is no platform: asked for one when the first GPU array comes.
  std::function<std::shared_ptr<Platform>()> open_platform;
  // Asked now and then in long waits: true ends them with `interrupted`.
  std::function<bool()> interrupted;
  // When an operation on this rank's GPU has failed: every later call on the GPU does as well, or the process ends.
  // WAYWISER_ON_FAILURE, or raise.
  std::optional<OnFailure> on_failure;
  // Whether what goes to other machines is encrypted; the same in all ranks. WAYWISER_ENCRYPT, or not.
  std::optional<bool> encrypt;
  // Whether kernels serve ranks that share a GPU, too, which run by turns of some milliseconds: to test with one GPU.
  // WAYWISER_SHARED_GPU, or not: their arrays go through host memory.
  std::optional<bool> kernels_on_shared_gpu;
  // Whether a thread gives what has begun (Mode::begin) its turns while the program computes; it begins by itself with
  // the first operation on a stream that the host has a part in. WAYWISER_PROGRESS_THREAD=on, or not.
  std::optional<bool> progress_thread;
  // The only core that this thread may run on. WAYWISER_PROGRESS_CORE, or all those of the process.
  std::optional<int> progress_core;
  // How long others may take to let go of the memory of a call that has failed. Then this process ends.
  Seconds letting_go = 5;
  // Which path messages between GPUs of one machine take; the same plan in all ranks. That of WAYWISER_PLAN, or none.
  std::shared_ptr<const Chooser> chooser;
  // Fingerprint of this machine's topology. Found out where the plan leads to several types of nodes.
  std::optional<std::string> node = {};
};

}  // namespace waywiser
