#pragma once

#include "waywiser/group/inside.hpp"
#include "waywiser/heap/device/proxy_ring.hpp"

namespace waywiser {

// What the owner of the memory answers to accesses: all up to this one are complete.
struct ProxyAnswer {
  std::uint64_t number = 0;  // of the last one
  std::uint64_t result = 0;  // of the last one, as is what it gets, which follows
};

// The messages between the proxies of a heap: what a rank asks for, and what it is answered, each with bytes that
// follow.
struct ProxyLabel {
  enum : unsigned { request, piece, answer, answer_piece };
};
using ProxyMessages = LabelledMessages;

}  // namespace waywiser
