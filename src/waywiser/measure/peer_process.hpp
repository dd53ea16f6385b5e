#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// The second process of a two-process measurement: runs waywiser-peer, ends with this object or this process.
class PeerProcess {
 public:
  // `environment`: NAME=value, in place of what this process has under these names. Throws unavailable when the
  // program cannot be started.
  explicit PeerProcess(const std::filesystem::path& program, const std::vector<std::string>& environment = {});
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  PeerChannel& channel() noexcept { return channel_; }
  pid_t id() const noexcept { return id_; }

 private:
  PeerProcess(const std::filesystem::path& program, const std::vector<std::string>& environment,
              std::pair<Descriptor, Descriptor> ends);

  PeerChannel channel_;
  pid_t id_ = -1;
};

}  // namespace waywiser
