#include "waywiser/offload/remote_driver.hpp"

#include <algorithm>

#include "waywiser/offload/remote_gpu_state.hpp"

namespace waywiser {
namespace {

constexpr std::string_view what_answered = "the server's answer";

// The server is believed no more than others.
template <typename Value>
Value read_as(const Json& told) {
  try {
    return told.get<Value>();
  } catch (const Json::exception&) {
    refuse_input(what_answered, "it has other values than it should");
  }
}

template <typename Value>
Value read_field(const Json& told, std::string_view key) {
  return read_as<Value>(require(told, key, what_answered));
}

RemoteKernel kernel_of(std::uint64_t number, const std::string& text) {
  const Json told = parse_json(text, what_answered);
  return {number, read_field<std::vector<std::pair<Bytes, Bytes>>>(told, "parameters"),
          read_field<std::vector<int>>(told, "attributes")};
}

std::uint64_t number_of(const std::string& text) { return read_as<std::uint64_t>(parse_json(text, what_answered)); }

}  // namespace

std::string RemoteDriver::ask(std::string_view question, std::uint64_t number,
                              std::initializer_list<std::uint64_t> arguments, std::string_view name) {
  if (name.size() > longest_kernel_name)
    throw Error(ErrorKind::invalid_input, "a name of " + std::to_string(name.size()) + " bytes");
  RemoteGpu::State& state = gpu_.held();
  const auto alone = state.alone(question);
  const ConstRegion text{reinterpret_cast<const std::byte*>(name.data()), name.size(), host(0)};
  state.add(question, requests::Ask{std::string(question), number, arguments, name.size()}, text, state.group);
  state.told_as(question, [&] { state.requests.flush(); });
  return state.reply_to(question).text;
}

void RemoteDriver::hold() {
  try {
    waywiser::hold(gpu_.held().group);
  } catch (const Error&) {
    gpu_.held().refuse_thread("a call");
  }
}

void RemoteDriver::let_go() noexcept { waywiser::let_go(gpu_.held().group); }

void RemoteDriver::set_timeout(Seconds timeout) { gpu_.held().group.set_timeout(timeout); }

GpuFacts RemoteDriver::facts() {
  const Json told = parse_json(ask("gpu", 0), what_answered);
  return {read_field<std::string>(told, "name"), read_field<std::string>(told, "uuid"),
          read_field<Bytes>(told, "bytes"), read_field<int>(told, "version"),
          read_field<std::vector<int>>(told, "attributes")};
}

std::uint64_t RemoteDriver::address(std::uint64_t array) { return number_of(ask("address", array)); }

void RemoteDriver::copy(std::uint64_t to, Bytes to_offset, std::uint64_t from, Bytes from_offset, Bytes bytes) {
  const auto alone = gpu_.held().alone("copy");
  gpu_.held().add("copy", requests::CopyBytes{{to, to_offset, bytes}, from, from_offset});
}

void RemoteDriver::fill(std::uint64_t array, Bytes offset, Bytes bytes, std::uint32_t value, unsigned unit) {
  const auto alone = gpu_.held().alone("fill");
  gpu_.held().add("fill", requests::Fill{{array, offset, bytes}, value, unit});
}

void RemoteDriver::get(std::uint64_t array, Bytes offset, Region into) {
  RemoteGpu::State& state = gpu_.held();
  const auto alone = state.alone("get");
  const Seconds begin = now_seconds();
  const auto pinned = state.pinned_at(into);
  const requests::GetPart get{{{array, offset, into.bytes}, pinned.place}};
  if (pinned) {
    state.copy_pinned("get", get, pinned);
  } else {
    const RemoteReply reply = state.answer("get", get);
    if (!reply.head || reply.head->bytes() != into.bytes) {
      state.group.abort("the client has no room for an array");
      throw Error(ErrorKind::invalid_input, state.name + ": an answer of another size");
    }
    state.receive("get", into);
  }
  state.output.add(begin, now_seconds());
}

RemoteKernel RemoteDriver::kernel(std::uint64_t code, std::string_view name) {
  const auto alone = gpu_.held().alone("kernel");
  const std::uint64_t number = ++gpu_.held().last;
  return kernel_of(number, ask("kernel", number, {code}, name));
}

RemoteDriver::Variable RemoteDriver::variable(std::uint64_t code, std::string_view name) {
  const auto alone = gpu_.held().alone("variable");
  const std::uint64_t number = ++gpu_.held().last;
  const Json told = parse_json(ask("variable", number, {code}, name), what_answered);
  return {number, read_field<std::uint64_t>(told, "address"), read_field<Bytes>(told, "bytes")};
}

void RemoteDriver::set_attribute(RemoteKernel& kernel, int attribute, int value) {
  const std::uint64_t given[] = {static_cast<std::uint64_t>(attribute), static_cast<std::uint64_t>(value)};
  kernel = kernel_of(kernel.number, ask("attribute", kernel.number, {given[0], given[1]}));
}

int RemoteDriver::occupancy(const RemoteKernel& kernel, int threads, Bytes shared) {
  return static_cast<int>(number_of(ask("occupancy", kernel.number, {static_cast<std::uint64_t>(threads), shared})));
}

void RemoteDriver::start(const RemoteKernel& kernel, const LaunchShape& shape, std::string_view parameters) {
  const auto alone = gpu_.held().alone("launch");
  if (parameters.size() > most_parameter_bytes)
    throw Error(ErrorKind::unavailable,
                "a kernel with more than " + std::to_string(most_parameter_bytes) + " bytes of parameters");
  const Seconds begin = now_seconds();
  gpu_.held().add("launch", requests::StartKernel{kernel.number, shape, std::string(parameters)});
  gpu_.held().compute.add(begin, now_seconds());
}

}  // namespace waywiser
