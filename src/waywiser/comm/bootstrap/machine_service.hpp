#pragma once

#include <functional>
#include <string>

#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// Rank 1's side of a RemoteMachine: starts a peer whenever rank 0 asks for one, until rank 0 says that it needs no
// more.
class MachineService {
 public:
  // What rank 0 needs another peer for, and what a waiting user may interrupt by an exception.
  struct Deeds {
    std::function<void()> connect;
    std::function<void()> idle;  // at least five times a second
  };
  // `host`: of rank 0, for messages. `patience`: how long rank 0 may be silent.
  MachineService(PeerSocket line, std::string host, Seconds patience = 60);

  // Throws io when rank 0 ends without a word, timeout when it gives no sign of life, and what the deeds throw.
  void serve(const Deeds& deeds);

 private:
  std::string next_word(const Deeds& deeds);
  void await_word(const Deeds& deeds);

  PeerChannel channel_;
  const std::string who_;
  const Seconds patience_;
};

}  // namespace waywiser
