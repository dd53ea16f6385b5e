#pragma once

#include <map>

#include "waywiser/measure/pair_connection.hpp"

namespace waywiser {

// One of the two processes of a measurement. Both are given the same commands at the same time and perform them in
// their roles: the initiator owns sources and measures, the peer owns destinations.
class PairSide {
 public:
  PairSide(Platform& platform, Role role, PeerChannel& channel, Flags& flags)
      : platform_(platform), role_(role), channel_(channel), flags_(flags) {}

  // {"do": "why_unavailable" | "open" | "close" | "buffers" | "free" | "run" | "first_use", ...}. Returns the
  // measurements, if any. Throws invalid_input for an unknown command. `release` is for the "run" of an initiator.
  Json perform(const Json& command, Deadline deadline, const Release& release = {});

 private:
  Json run(const Json& command, Deadline deadline, const Release& release);
  Json first_use(const Path& path, Deadline deadline);
  void make_buffers(const Json& command, Deadline deadline);

  Platform& platform_;
  Role role_;
  PeerChannel& channel_;
  Flags& flags_;
  std::map<std::string, PairBuffers> buffers_;                          // by buffers_key
  std::map<std::string, std::unique_ptr<PairConnection>> connections_;  // by connection_key
};

std::string connection_key(const Path& path);

Json to_json(const PairRun& run);
PairRun pair_run_from_json(const Json& value, std::string_view what);
PairResult pair_result_from_json(const Json& value, std::string_view what);

// The peer process: answers the initiator's commands until the initiator ends. Returns the exit status.
int serve_as_peer(PeerSocket line);

}  // namespace waywiser
