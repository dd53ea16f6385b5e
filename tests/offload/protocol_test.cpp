#include <gtest/gtest.h>

#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/offload/reply.hpp"
#include "waywiser/offload/request.hpp"

namespace waywiser {
namespace {

RemoteRequest made_up(RequestKind kind) {
  RemoteRequest request;
  request.kind = kind;
  request.array = 1;
  request.head = {DataType::float32, false, {2, 3}};
  request.offset = 4;
  request.bytes = 5;
  request.memory = 6;
  request.at = 7;
  request.function = "name";
  request.arguments = {8, 9};
  request.numbers = {{"factor", 10}};
  request.shape.grid = {11, 12, 13};
  request.shape.block = {14, 15, 16};
  request.shape.shared = 17;
  request.kernel_arguments = {{KernelArgument::Kind::float64, 18}};
  request.secret = std::string(digits_of_road, 'a');
  request.address = "127.0.0.1:19";
  request.plain = true;
  request.earlier = 20;
  request.parameters = "parameters";
  request.road = DataRoad::pinned;
  return request;
}

RemoteReply made_up_reply() {
  RemoteReply reply;
  reply.failure = RemoteFailure{ErrorKind::device, "why"};
  reply.used = 1;
  reply.requests = 2;
  reply.head = ArrayHead{DataType::int64, false, {3}};
  reply.placed = true;
  reply.details = 4;
  reply.address = "127.0.0.1:5";
  reply.since = 6;
  return reply;
}

// A client and a server whose bytes differ must have different numbers, or they misread each other.
TEST(OffloadProtocol, HasANewNumberIfItsBytesHaveChanged) {
  FingerprintHash hash;
  const auto add = [&](std::span<const std::byte> bytes) {
    hash.add(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  };
  for (int kind = 1; kind <= last_request_kind; ++kind) add(bytes_of_request(made_up(static_cast<RequestKind>(kind))));
  add(frame_of(made_up_reply()));
  hash.add(std::to_string(frame_bytes_of_requests));
  EXPECT_EQ(std::to_string(offload_protocol) + ": " + hash.hexadecimal(), "2: 9f758d8b2af061a8")
      << "the bytes have changed: raise offload_protocol, and write both here";
}

}  // namespace
}  // namespace waywiser
