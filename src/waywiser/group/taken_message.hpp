#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "waywiser/group/group.hpp"

namespace waywiser {

// A message that has been found and taken: no receive and no probe sees it any more. Its bytes come into memory of this
// object. Without receive() it is lost.
class [[gnu::visibility("default")]] TakenMessage {
 public:
  const MessageStatus& status() const noexcept { return status_; }
  // Once: waits until the message is here, and copies it into the beginning of the array. Throws as Group::recv;
  // invalid_input, and the message stays, for an array of another type or one that is too short; unavailable for memory
  // of a GPU.
  void receive(Elements into);

 private:
  friend std::optional<TakenMessage> mprobe(Group& group, int from, int tag, std::optional<Seconds> patience);
  TakenMessage(Group& group, const MessageStatus& status);

  MessageStatus status_;
  std::shared_ptr<std::vector<std::byte>> bytes_;  // nullptr: has been received
  Future arrival_;
};

// Waits and throws as Group::probe, and takes what it finds; nothing if no message has come.
[[gnu::visibility("default")]] std::optional<TakenMessage> mprobe(Group& group, int from = any_source,
                                                                  int tag = any_tag,
                                                                  std::optional<Seconds> patience = {});

}  // namespace waywiser
