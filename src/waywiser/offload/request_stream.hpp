#pragma once

#include <array>
#include <vector>

#include "waywiser/group/group.hpp"
#include "waywiser/offload/reply.hpp"
#include "waywiser/offload/request.hpp"

namespace waywiser {

// As a request travels. Throws invalid_input if it does not fit in a frame.
std::vector<std::byte> fitting_bytes(const RemoteRequest& request);

// The requests of a client on their way to its worker. A request goes at once if the frame before it has gone; while
// the server has no room for that one, requests collect in the next frame.
class RequestStream {
 public:
  explicit RequestStream(Group& group) : group_(group) {}
  RequestStream(const RequestStream&) = delete;
  RequestStream& operator=(const RequestStream&) = delete;

  // The bytes of a request, which fit. Throws what a group throws, as do the others.
  void add(std::span<const std::byte> request);
  // Returns when all of them have gone.
  void flush();
  RemoteReply receive_reply();

 private:
  using Frame = std::array<std::byte, frame_bytes_of_requests>;
  void send();

  Group& group_;
  std::array<Frame, 2> frames_{};  // one is filled while the other one goes
  std::size_t filled_ = 0, used_ = 0;
  Future going_;
};

}  // namespace waywiser
