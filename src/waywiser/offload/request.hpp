#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/comm/message/wire.hpp"
#include "waywiser/offload/array_head.hpp"
#include "waywiser/offload/array_road.hpp"
#include "waywiser/offload/data_road.hpp"
#include "waywiser/offload/launch.hpp"

namespace waywiser {

// Client and server have the same one: a new number for each change of what travels. tests/offload/protocol_test.cpp
// notices changes of requests and replies.
inline constexpr int offload_protocol = 2;

// What a client asks its worker for. A client names arrays by numbers of its own.
enum class RequestKind : std::uint8_t {
  zeros = 1,    // a new array of zeros
  array,        // a new array, whose bytes follow as messages
  put,          // bytes of an array, which follow
  get,          // the reply has the array's head, and its bytes follow if nothing has failed
  free,         // of an array, a stream or an event
  run,          // a function of arrays and numbers; its result becomes a new array
  synchronize,  // a reply when all earlier requests are done
  end,          // the last one
  code,         // kernels, whose code follows; a reply when they are compiled; `array`: the number of the code
  launch,       // a kernel of a code
  give,         // an array to another worker: the reply says where it is waited for
  take,         // a new array, from the worker that waits there
  road,         // of the bytes of arrays from now on
  stream,       // in which functions and kernels run from now on, in their order; 0: the one that waits for all
  record,       // an event: all that the stream has begun
  wait,         // of the stream for an event
  await,        // a reply when an event has happened
  since,        // the same for two events; the reply has the seconds between them
  plain,        // arrays go unencrypted from now on, over a group of their own: the reply says where it is waited for
  pin,          // memory of the client on the worker's machine; the reply says whether both can use it
  array_from,   // a new array, whose bytes lie in such memory; a reply when they have been read
  put_from,     // the same for bytes of an array
  begin_put,    // the same without a reply: the stream copies them
  get_into,     // an array goes into such memory; the reply has the array's head
  // For programs of the CUDA driver API, where kernels get addresses:
  copy,      // bytes of an array, from another one (`memory`, `at`)
  fill,      // bytes of an array, with `at` in units of `earlier` bytes
  get_part,  // bytes of an array: they follow the reply, unless `memory` is not 0 and they are placed there
  start,     // a kernel that was asked for, with the bytes of its parameters
  ask        // a question about the GPU, an array, a code or a kernel; a name may follow; the reply has a text
};
inline constexpr std::uint8_t last_request_kind = 29;
inline constexpr Bytes longest_code = Bytes{4} << 20;

struct RemoteRequest {
  using Numbers = std::vector<std::pair<std::string, double>>;

  RequestKind kind = RequestKind::synchronize;
  std::uint64_t array = 0;      // of run: the result's
  ArrayHead head;               // of a new array; of get_into: the room's type and elements
  Bytes offset = 0, bytes = 0;  // of parts of an array; bytes also of what follows: a code, a name
  std::uint64_t memory = 0;     // of the client: where the bytes lie or go, from `at`
  std::uint64_t at = 0;         // also of pin: the memory's file, as the client has opened it
  std::string function;
  std::vector<std::uint64_t> arguments;
  Numbers numbers;
  LaunchShape shape;
  std::vector<KernelArgument> kernel_arguments;
  std::string secret, address;  // of give and take: where the workers meet; the secret also of plain and pin
  bool plain = false;           // of give and take: unencrypted, also between machines
  std::uint64_t earlier = 0;    // of since: an event
  std::string parameters;       // of start
  DataRoad road = DataRoad::direct;

  bool operator==(const RemoteRequest&) const = default;
};

// Requests travel in frames of one size: the number of bytes in use (2 bytes), then one request after the other.
inline constexpr std::size_t frame_bytes_of_requests = 1024;
inline constexpr std::size_t frame_room = frame_bytes_of_requests - 2;
inline constexpr std::size_t longest_function_name = 64;
inline constexpr std::size_t longest_number_name = 32;
inline constexpr std::size_t most_kernel_arguments = 100;
inline constexpr std::size_t most_parameter_bytes = 900;  // of start
inline constexpr std::size_t longest_kernel_name = 8192;  // of ask: C++ names are long

std::vector<std::byte> bytes_of_request(const RemoteRequest& request);

// The requests of a frame, one by one. Throws invalid_input for bytes that are no request.
class RequestReader {
 public:
  explicit RequestReader(std::span<const std::byte> frame);
  std::optional<RemoteRequest> next();

 private:
  std::size_t left_;
  WireReader reader_;
};

}  // namespace waywiser
