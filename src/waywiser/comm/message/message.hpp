#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/comm/message/copy_end.hpp"
#include "waywiser/transport/ucx/rail_parts.hpp"

namespace waywiser {

// What precedes a message by rails: its tag and its length.
using MessageHead = std::array<std::uint64_t, 2>;

// The part of a message between machines that NetworkRails moves.
struct RailedMessage {
  const std::vector<UcxRail>* rails = nullptr;
  RailParts parts;
  std::size_t bytes = 0;  // of all of them
  bool on_gpu = false;
  // A header with the sender's tag and length, sent by UCX's default path: the receiver compares them. Pieces need
  // none, since their length is agreed.
  bool headed = false, head_read = false;
  MessageHead head{};
};

// One message in flight, or its result. Its owner keeps it at its address until it is complete or cancelled.
struct Message {
  UcxRequest request = nullptr;  // nullptr: not with UCX, or complete
  bool receiving = false;
  bool waiting = false;  // a short message that is not complete
  bool reached = false;  // with UCX: the peer may access the memory itself
  std::uint32_t peer = 0;
  ucp_tag_recv_info_t info{};  // of a complete receive

  // For messages of known length.
  bool listed = false;  // an awaited message that UCX carries
  ucp_tag_t tag = 0;
  std::byte* into = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  Message* next = nullptr;
  // For a message that both ranks copy.
  enum class Stage : std::uint8_t { queued, copied, left_to_ucx } stage = Stage::queued;
  CopyEnd end;
  std::uint32_t number = 0;  // for the case that UCX carries it
  bool twice = false;        // UCX then copies it twice
  ucp_tag_t came_with = 0;   // if UCX carries it under a tag of its own: the tag of the offer

  std::unique_ptr<RailedMessage> railed;  // nullptr: not by rails

  bool is_open() const noexcept { return waiting || request != nullptr || railed != nullptr; }
};

}  // namespace waywiser
