#pragma once

#include <functional>
#include <string>

#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// Rank 1's side of a RemoteMachine: starts a peer whenever rank 0 asks for one, until rank 0 needs no more.
class MachineService {
 public:
  // The actions for rank 0's requests; an exception from a waiting user may interrupt them.
  struct Deeds {
    std::function<void()> connect;
    std::function<void()> idle;  // called at least five times a second
  };
  // `host`: rank 0's machine, for messages. `patience`: how long rank 0 may be silent.
  MachineService(PeerSocket line, std::string host, Seconds patience = 60);

  // Throws io if rank 0 ends without dismissing this rank, timeout if it gives no sign of life, and the errors of the
  // deeds.
  void serve(const Deeds& deeds);

 private:
  std::string next_word(const Deeds& deeds);
  void await_word(const Deeds& deeds);

  PeerChannel channel_;
  const std::string who_;
  const Seconds patience_;
};

}  // namespace waywiser
