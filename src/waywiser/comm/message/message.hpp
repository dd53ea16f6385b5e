#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "waywiser/comm/message/tag.hpp"

namespace waywiser {

class Carrier;

// What precedes a message by rails: its tag and its length.
using MessageHead = std::array<std::uint64_t, 2>;

// What a carrier keeps of a message that needs more than a handle.
struct CarrierRequest {
  virtual ~CarrierRequest() = default;
};

// One message in flight, or its result. Its owner keeps it at its address until it is complete or cancelled.
struct Message {
  bool receiving = false;
  std::uint32_t peer = 0;
  Tag tag = 0;
  std::byte* into = nullptr;        // of a receive
  const std::byte* from = nullptr;  // of a send
  std::size_t bytes = 0;
  Received info{};  // of a complete receive

  // Its carrier's. waits: it becomes complete in a turn of progress; asked: when its carrier is asked for it.
  enum class State : std::uint8_t { complete, waits, asked } state = State::complete;
  bool listed = false;
  Carrier* carrier = nullptr;
  Message* next = nullptr;  // in a MessageList
  void* handle = nullptr;
  std::unique_ptr<CarrierRequest> request;

  bool is_open() const noexcept { return state != State::complete; }
};

}  // namespace waywiser
