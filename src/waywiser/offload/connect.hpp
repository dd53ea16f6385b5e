#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "waywiser/offload/remote_gpu.hpp"

namespace waywiser {

// A GPU of a server that `waywiser serve` has started.
struct RemoteGpuOptions {
  std::string address;             // HOST:PORT
  std::filesystem::path key = {};  // the file with the key of client and server; empty: ~/.config/waywiser/serve.key
  int gpu = 0;                     // which of the server's GPUs
  Seconds timeout = 60;            // of every call
  bool data_plain = false;  // the bytes of arrays may go to another machine unencrypted: RemoteGpu::use_plain_data
  std::function<bool()> interrupted = {};  // polled in long waits; true ends them with `interrupted`
};
// Throws invalid_input for a wrong key or address and if the server refuses; unavailable if it
// does not admit data_plain; io if it cannot be reached; timeout.
[[gnu::visibility("default")]] RemoteGpu connect_remote_gpu(const RemoteGpuOptions& options);
// The server's GPUs and clients, as JSON: `gpus`, `clients` and `limit`, in bytes, of a client. Throws the same.
[[gnu::visibility("default")]] std::string remote_server_state(const RemoteGpuOptions& options);
// How many GPUs the server has: their numbers are 0 and on. Throws the same.
[[gnu::visibility("default")]] int remote_gpus(const RemoteGpuOptions& options);

}  // namespace waywiser
