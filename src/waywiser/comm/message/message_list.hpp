#pragma once

#include <utility>

#include "waywiser/comm/message/message.hpp"

namespace waywiser {

// Messages of a carrier, in order; each is in one list at most.
struct MessageList {
  Message* first = nullptr;
  Message* last = nullptr;

  void append(Message& message) noexcept {
    message.next = nullptr;
    (first == nullptr ? first : last->next) = &message;
    last = &message;
  }
  void prepend(Message& message) noexcept {
    message.next = std::exchange(first, &message);
    if (last == nullptr) last = &message;
  }
  // False: it is not there.
  bool remove(const Message& message) noexcept {
    Message* before = nullptr;
    for (Message* one = first; one != nullptr; before = std::exchange(one, one->next)) {
      if (one != &message) continue;
      (before == nullptr ? first : before->next) = one->next;
      if (last == one) last = before;
      return true;
    }
    return false;
  }
};

}  // namespace waywiser
