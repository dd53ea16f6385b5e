#include <gtest/gtest.h>

#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/offload/reply.hpp"
#include "waywiser/offload/request.hpp"

namespace waywiser {
namespace {

// One of each kind, in their order.
std::vector<RemoteRequest> made_up() {
  const ArrayHead head{DataType::float32, false, {2, 3}};
  const requests::PartOfArray part{1, 4, 5};
  const requests::PinnedPlace place{6, 7};
  const LaunchShape shape{{11, 12, 13}, {14, 15, 16}, 17};
  const std::string secret(digits_of_secret, 'a');
  return {requests::Synchronize{},
          requests::End{},
          requests::Zeros{{1, head}},
          requests::NewArray{{1, head}},
          requests::Put{part},
          requests::Get{{1}},
          requests::Free{{1}},
          requests::Run{1, "name", {8, 9}, {{"factor", 10}}},
          requests::LoadCode{1, 5},
          requests::LaunchKernel{1, "name", shape, {{KernelArgument::Kind::float64, 18}}},
          requests::Give{1, secret, true},
          requests::Take{1, secret, "127.0.0.1:19", true},
          requests::UseRoad{DataRoad::pinned},
          requests::OpenPlain{secret},
          requests::UseStream{{1}},
          requests::Record{{1}},
          requests::Wait{{1}},
          requests::Await{{1}},
          requests::Since{1, 20},
          requests::Pin{1, 5, 7, secret},
          requests::ArrayFrom{{1, head, place}},
          requests::PutFrom{{part, place}},
          requests::BeginPut{{part, place}},
          requests::GetInto{{1, head, place}},
          requests::CopyBytes{part, 6, 7},
          requests::Fill{part, 7, 2},
          requests::GetPart{{part, place}},
          requests::StartKernel{1, shape, "parameters"},
          requests::Ask{"name", 1, {8, 9}, 5}};
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
  const std::vector<RemoteRequest> all = made_up();
  ASSERT_EQ(all.size(), std::variant_size_v<RemoteRequest>);
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    EXPECT_EQ(all[kind].index(), kind);
    add(bytes_of_request(all[kind]));
  }
  add(frame_of(made_up_reply()));
  hash.add(std::to_string(frame_bytes_of_requests));
  EXPECT_EQ(std::to_string(offload_protocol) + ": " + hash.hexadecimal(), "3: c726d213ab853a35")
      << "the bytes have changed: raise offload_protocol, and write both here";
}

}  // namespace
}  // namespace waywiser
