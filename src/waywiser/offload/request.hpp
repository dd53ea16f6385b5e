#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "waywiser/comm/message/wire.hpp"
#include "waywiser/offload/array_head.hpp"
#include "waywiser/offload/data_road.hpp"
#include "waywiser/offload/launch.hpp"
#include "waywiser/offload/worker_line.hpp"

namespace waywiser {

// Client and server have the same one: a new number for each change of what travels. tests/offload/protocol_test.cpp
// notices changes of requests and replies.
inline constexpr int offload_protocol = 3;

// What a client asks its worker for. It numbers arrays, streams, events, codes and its own memory, and uses no number
// twice.
namespace requests {

struct Numbered {
  std::uint64_t number = 0;
};
struct WithHead {
  std::uint64_t array = 0;
  ArrayHead head;
};
struct PartOfArray {
  std::uint64_t array = 0;
  Bytes offset = 0, bytes = 0;
};
// In memory of the client that its worker has mapped.
struct PinnedPlace {
  std::uint64_t memory = 0;
  Bytes offset = 0;
};
struct PartAndPlace {
  PartOfArray part;
  PinnedPlace place;
};
struct HeadAndPlace {
  std::uint64_t array = 0;
  ArrayHead head;
  PinnedPlace place;
};

struct Synchronize {};               // a reply when all earlier requests are done
struct End {};                       // the last one
struct Zeros : WithHead {};          // a new array of zeros
struct NewArray : WithHead {};       // a new array, whose bytes follow as messages
struct Put : PartOfArray {};         // the bytes follow
struct Get : Numbered {};            // the reply has the array's head, and its bytes follow if nothing has failed
struct Free : Numbered {};           // an array, a stream, an event or memory
struct UseStream : Numbered {};      // for functions and kernels from now on, in their order; 0: waits for all others
struct Record : Numbered {};         // an event: all that the stream has begun
struct Wait : Numbered {};           // of the stream for an event
struct Await : Numbered {};          // a reply when an event has happened
struct ArrayFrom : HeadAndPlace {};  // a new array, whose bytes lie there; a reply when they have been read
struct PutFrom : PartAndPlace {};    // the same for bytes of an array
struct BeginPut : PartAndPlace {};   // the same without a reply: the stream copies them
struct GetInto : HeadAndPlace {};    // an array, to where an array with this head has room; the reply has its own head
struct GetPart : PartAndPlace {};    // the bytes follow the reply, unless there is memory, where they are placed

// The reply has the seconds between two events.
struct Since {
  std::uint64_t later = 0, earlier = 0;
};
using Numbers = std::vector<std::pair<std::string, double>>;  // by their names
// A function; its result becomes a new array.
struct Run {
  std::uint64_t result = 0;
  std::string function;
  std::vector<std::uint64_t> arrays;
  Numbers numbers;
};
// Kernels, whose code follows; a reply when they are compiled.
struct LoadCode {
  std::uint64_t code = 0;
  Bytes bytes = 0;
};
struct LaunchKernel {
  std::uint64_t code = 0;
  std::string kernel;
  LaunchShape shape;
  std::vector<KernelArgument> arguments;
};
// An array to another worker: the reply says where it is waited for. `plain`: unencrypted, also between machines.
struct Give {
  std::uint64_t array = 0;
  std::string secret;
  bool plain = false;
};
// A new array, from the worker that waits there.
struct Take {
  std::uint64_t array = 0;
  std::string secret, address;
  bool plain = false;
};
// How the bytes of arrays are moved from now on.
struct UseRoad {
  DataRoad road = DataRoad::direct;
};
// Arrays go unencrypted from now on, over a group of their own: the reply says where it is waited for.
struct OpenPlain {
  std::string secret;
};
// Memory of the client, by the number of the file that it has opened; the reply says whether both can use it.
struct Pin {
  std::uint64_t memory = 0;
  Bytes bytes = 0;
  std::uint64_t file = 0;
  std::string secret;
};

// For programs of the CUDA driver API, where kernels get addresses:
struct CopyBytes {
  PartOfArray to;
  std::uint64_t from = 0;
  Bytes from_offset = 0;
};
struct Fill {
  PartOfArray part;
  std::uint64_t value = 0, unit = 1;  // of 1, 2 or 4 bytes
};
// A kernel that was asked for.
struct StartKernel {
  std::uint64_t kernel = 0;
  LaunchShape shape;
  std::string parameters;
};
// About the GPU, an array, a code or a kernel; a name of so many bytes follows; the reply has a text.
struct Ask {
  std::string question;
  std::uint64_t number = 0;
  std::vector<std::uint64_t> arguments;
  Bytes name_bytes = 0;
};

}  // namespace requests

// As it travels, a request begins with its place here.
using RemoteRequest =
    std::variant<requests::Synchronize, requests::End, requests::Zeros, requests::NewArray, requests::Put,
                 requests::Get, requests::Free, requests::Run, requests::LoadCode, requests::LaunchKernel,
                 requests::Give, requests::Take, requests::UseRoad, requests::OpenPlain, requests::UseStream,
                 requests::Record, requests::Wait, requests::Await, requests::Since, requests::Pin, requests::ArrayFrom,
                 requests::PutFrom, requests::BeginPut, requests::GetInto, requests::CopyBytes, requests::Fill,
                 requests::GetPart, requests::StartKernel, requests::Ask>;

// Requests travel in frames of one size: the number of bytes in use (2 bytes), then one request after the other.
inline constexpr std::size_t frame_bytes_of_requests = 1024;
inline constexpr std::size_t frame_room = frame_bytes_of_requests - 2;
inline constexpr Bytes longest_code = Bytes{4} << 20;
inline constexpr std::size_t longest_function_name = 64;
inline constexpr std::size_t longest_number_name = 32;
inline constexpr std::size_t most_kernel_arguments = 100;
inline constexpr std::size_t most_parameter_bytes = 900;  // of StartKernel
inline constexpr std::size_t longest_kernel_name = 8192;  // of Ask: C++ names are long

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
