#pragma once

#include <cstdint>

#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {

// One message on its way, or its result. Kept, where it is, by whoever started it until it is complete or cancelled.
struct Message {
  UcxRequest request = nullptr;  // nullptr: not with UCX, or complete
  bool receiving = false;
  bool waiting = false;  // of a short one: not complete
  std::uint32_t peer = 0;
  ucp_tag_recv_info_t info{};  // of a receive, when complete

  // Of a message whose length its receiver knows.
  bool listed = false;  // a longer one that is awaited
  ucp_tag_t tag = 0;
  std::byte* into = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  Message* next = nullptr;
};

}  // namespace waywiser
