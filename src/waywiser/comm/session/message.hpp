#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/comm/shared_memory/shared_copy.hpp"
#include "waywiser/transport/ucx/rail_parts.hpp"

namespace waywiser {

// What NetworkRails moves of a message between machines.
struct RailedMessage {
  const std::vector<UcxRail>* rails = nullptr;
  RailParts parts;
  std::size_t bytes = 0;  // of all of them
  bool on_gpu = false;
  // The tag and the length as the sender knows them, by UCX itself: the receiver compares. Not of pieces, whose length
  // has been agreed.
  bool headed = false, head_read = false;
  std::array<std::uint64_t, 2> head{};
};

// One message on its way, or its result. Kept, where it is, by whoever started it until it is complete or cancelled.
struct Message {
  UcxRequest request = nullptr;  // nullptr: not with UCX, or complete
  bool receiving = false;
  bool waiting = false;  // of a short one: not complete
  bool reached = false;  // by UCX: the peer may read or write the memory itself
  std::uint32_t peer = 0;
  ucp_tag_recv_info_t info{};  // of a receive, when complete

  // Of a message whose length its receiver knows.
  bool listed = false;  // one by UCX that is awaited
  ucp_tag_t tag = 0;
  std::byte* into = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  Message* next = nullptr;
  // Of one that both ranks copy.
  enum class Stage : std::uint8_t { queued, copied, left_to_ucx } stage = Stage::queued;
  CopyEnd end;
  std::uint32_t number = 0;  // in case it comes by UCX
  bool twice = false;        // which then copies it twice
  ucp_tag_t came_with = 0;   // by UCX, with a tag of its own: the one that it was offered with

  std::unique_ptr<RailedMessage> railed;  // nullptr: it does not go by rails

  bool is_open() const noexcept { return waiting || request != nullptr || railed != nullptr; }
};

}  // namespace waywiser
