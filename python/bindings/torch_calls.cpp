// The table of functions that the back end of torch.distributed in C++ calls.
#include <exception>
#include <map>
#include <memory>

#include "bindings/array.hpp"
#include "bindings/bindings.hpp"
#include "bindings/group_call.hpp"
#include "bindings/torch_tensor.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/torch_backend/cpp/core_calls.hpp"

namespace nb = nanobind;

namespace waywiser::torch_backend {

// The GPUs and the streams that calls have named so far.
struct GroupHandle {
  CoreCalls table;
  Group* group;
  std::map<int, Place> gpus;
  std::map<std::uint64_t, std::unique_ptr<Stream>> streams;
};

struct FutureHandle {
  Future future;
};

}  // namespace waywiser::torch_backend

namespace waywiser {
namespace {

using torch_backend::CallArguments;
using torch_backend::CallName;
using torch_backend::FutureHandle;
using torch_backend::GroupHandle;

thread_local std::exception_ptr failure;

template <typename Function>
bool succeeds(Function function) {
  try {
    function();
    return true;
  } catch (...) {
    failure = std::current_exception();
    return false;
  }
}

Place place_of(GroupHandle& handle, const CallArguments& arguments) {
  if (arguments.gpu < 0) return host(0);
  const auto known = handle.gpus.find(arguments.gpu);
  if (known != handle.gpus.end()) return known->second;
  const void* address = arguments.output != nullptr ? arguments.output : arguments.input;
  const Platform& gpus = *handle.group->platform();
  const std::optional<Place> place = gpus.gpu_of(static_cast<const std::byte*>(address));
  if (!place) refuse_array("Tensor", why_foreign(gpus));
  handle.gpus.emplace(arguments.gpu, *place);
  return *place;
}

constexpr std::size_t most_streams = 64;  // a program may make new ones again and again

Stream& stream_of(GroupHandle& handle, const CallArguments& arguments, Place place) {
  if (handle.streams.size() >= most_streams) handle.streams.clear();
  std::unique_ptr<Stream>& stream = handle.streams[arguments.stream];
  if (!stream || stream->place() != place) stream = handle.group->platform()->borrow_stream(place, arguments.stream);
  return *stream;
}

Future call(Group& group, const CallArguments& arguments, ConstElements give, Elements take, Mode mode) {
  const auto op = static_cast<ReduceOp>(arguments.operation);
  switch (arguments.name) {
    case CallName::all_reduce: return group.all_reduce(give, take, op, mode);
    case CallName::broadcast: return group.broadcast(take, arguments.rank, mode);
    case CallName::all_gather: return group.all_gather(give, take, mode);
    case CallName::reduce_scatter: return group.reduce_scatter(give, take, op, mode);
    case CallName::all_to_all: return group.all_to_all(give, take, mode);
    case CallName::send: return group.send(give, arguments.rank, arguments.tag, mode);
    case CallName::recv: return group.recv(take, arguments.rank, arguments.tag, mode);
  }
  return {};
}

// A message of a GPU has a tag, which those on streams have not: it begins after earlier work of the stream.
Future begun_or_enqueued(GroupHandle& handle, const CallArguments& arguments) {
  const Place place = place_of(handle, arguments);
  const auto type = static_cast<DataType>(arguments.type);
  const ConstElements give({static_cast<const std::byte*>(arguments.input), arguments.input_bytes, place}, type);
  const Elements take({static_cast<std::byte*>(arguments.output), arguments.output_bytes, place}, type);
  const bool message = arguments.name == CallName::send || arguments.name == CallName::recv;
  if (!place.is_gpu()) return call(*handle.group, arguments, give, take, Mode::begin);
  Stream& stream = stream_of(handle, arguments, place);
  if (message) handle.group->synchronize(stream);
  return call(*handle.group, arguments, give, take, message ? Mode(Mode::begin) : Mode::on(stream));
}

bool call_of_handle(GroupHandle* handle, const CallArguments& arguments, FutureHandle** future) {
  return succeeds([&] {
    Future begun = begun_or_enqueued(*handle, arguments);
    *future = begun.is_under_way() ? new FutureHandle{std::move(begun)} : nullptr;
  });
}

bool is_capturing(GroupHandle* handle, const CallArguments& arguments, bool* answer) {
  return succeeds([&] { *answer = stream_of(*handle, arguments, place_of(*handle, arguments)).capturing(); });
}

int type_number(const char* torch_name) {
  const std::optional<DataType> type = torch_type(torch_name);
  return type ? static_cast<int>(*type) : -1;
}

int operation_number(const char* name) {
  try {
    return static_cast<int>(parse_reduce_op(name));
  } catch (const Error&) {
    return -1;
  }
}

// An interruption is raised as what it is.
void raise_failure() {
  const std::exception_ptr thrown = std::exchange(failure, nullptr);
  if (PyErr_Occurred() == nullptr) raise_in_python(thrown);
}

constexpr torch_backend::CoreCalls functions{
    .group = nullptr,
    .type_of = type_number,
    .operation_of = operation_number,
    .call = call_of_handle,
    .is_capturing = is_capturing,
    .keep = [](FutureHandle* future, void* owner,
               void (*let_go)(void*)) { future->future.keep(std::shared_ptr<void>(owner, let_go)); },
    .done = [](FutureHandle* future, bool* answer) { return succeeds([&] { *answer = future->future.done(); }); },
    .wait = [](FutureHandle* future) { return succeeds([&] { future->future.wait(); }); },
    .drop = [](FutureHandle* future) { delete future; },
    .raise = raise_failure};

nb::capsule core_calls(Group& group) {
  auto handle = std::make_unique<GroupHandle>(GroupHandle{functions, &group, {}, {}});
  handle->table.group = handle.get();
  return {handle.release(), torch_backend::core_calls_name,
          [](void* ended) noexcept { delete static_cast<GroupHandle*>(ended); }};
}

}  // namespace

void bind_torch_calls(nb::class_<Group>& type) {
  type.def("core_calls", core_calls, "The functions of torch_backend/cpp/core_calls.hpp, for as long as this lives.");
}

}  // namespace waywiser
