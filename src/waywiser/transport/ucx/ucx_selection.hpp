#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/path/path.hpp"

namespace waywiser {

// The UCX settings for a path's parameters.
struct UcxSelection {
  std::string name;        // the transport of UCX that must be there and that the large messages go by
  std::string transports;  // UCX_TLS: with those that it needs beside it, for small messages or to connect
  std::string devices;     // UCX_NET_DEVICES; empty for all
  enum class Memory { host, gpu_pair, any_gpu, any } memory = Memory::host;
  bool between_machines = false;
  std::vector<std::pair<std::string, std::string>> settings = {};  // further variables of UCX, without UCX_
};

// One for each rail; none if there is no such path.
std::vector<UcxSelection> ucx_rails(const Path& path);

// UCX_TLS in its parts.
std::vector<std::string> transports_of(const UcxSelection& selection);

// The transport that carries large messages between the two processes: cuda_copy only copies at each end.
std::string crosses_by(const UcxSelection& selection);

}  // namespace waywiser
