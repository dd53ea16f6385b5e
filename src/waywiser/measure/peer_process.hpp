#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waywiser/measure/peer.hpp"

namespace waywiser {

// A running waywiser-peer; ends with this object. `line`: its control connection; `seal`: its keys, if the connection
// is sealed. It sees nothing of the job of this process. `environment`: NAME=value, overrides this process's variables.
// Throws unavailable if the program cannot be started.
class PeerProgram {
 public:
  PeerProgram(const std::filesystem::path& program, const Descriptor& line,
              const std::vector<std::string>& environment = {}, const Seal& seal = {});
  PeerProgram(const PeerProgram&) = delete;
  PeerProgram& operator=(const PeerProgram&) = delete;
  ~PeerProgram();

  pid_t id() const noexcept { return id_; }

 private:
  pid_t id_ = -1;
};

// The second process of a two-process measurement.
class PeerProcess : public Peer {
 public:
  // As PeerProgram.
  explicit PeerProcess(const std::filesystem::path& program, const std::vector<std::string>& environment = {});

  PeerChannel& channel() noexcept override { return channel_; }
  pid_t id() const noexcept override { return program_.id(); }

 private:
  PeerProcess(const std::filesystem::path& program, const std::vector<std::string>& environment,
              std::pair<Descriptor, Descriptor> ends);

  PeerChannel channel_;
  PeerProgram program_;
};

}  // namespace waywiser
