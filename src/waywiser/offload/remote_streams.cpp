#include <array>

#include "waywiser/base/crypto.hpp"
#include "waywiser/offload/remote_gpu_state.hpp"
#include "waywiser/offload/secret_pair.hpp"

namespace waywiser {

std::uint64_t RemoteGpu::new_stream() {
  const auto alone = held().alone("new_stream");
  return ++held().last;
}

std::uint64_t RemoteGpu::new_event() {
  const auto alone = held().alone("new_event");
  return ++held().last;
}

void RemoteGpu::use_stream(std::uint64_t stream) {
  const auto alone = held().alone("stream");
  held().check_open();
  if (stream == held().stream) return;
  held().add("stream", requests::UseStream{{stream}});
  held().stream = stream;
}

void RemoteGpu::record(std::uint64_t event) {
  const auto alone = held().alone("record");
  held().add("record", requests::Record{{event}});
}

void RemoteGpu::wait(std::uint64_t event) {
  const auto alone = held().alone("wait");
  held().add("wait", requests::Wait{{event}});
}

void RemoteGpu::await(std::uint64_t event) {
  const auto alone = held().alone("await");
  held().answer("await", requests::Await{{event}});
}

Seconds RemoteGpu::since(std::uint64_t later, std::uint64_t earlier) {
  const auto alone = held().alone("since");
  return held().answer("since", requests::Since{later, earlier}).since;
}

void RemoteGpu::use_plain_data(const std::function<bool()>& interrupted) {
  const auto alone = held().alone("data_plain");
  held().answer("data_plain");  // what encrypts is known after the first message
  if (held().plain || held().group.encrypted_by(worker_rank).empty()) {
    held().wants_plain = true;
    return;
  }
  std::array<std::byte, digits_of_secret / 2> random{};
  fill_with_random(random);
  const std::string secret = hexadecimal(random);
  const RemoteReply reply = held().answer("data_plain", requests::OpenPlain{secret});
  try {
    held().told_as("data_plain", [&] {
      SecretPair pair;
      pair.purpose = "plain";
      pair.secret = secret;
      pair.root = parse_endpoint(reply.address);
      pair.encrypt = false;
      pair.timeout = held().group.timeout();
      pair.interrupted = interrupted;
      held().plain.emplace(pair.join());
      held().wants_plain = true;
    });
  } catch (...) {
    held().group.abort("the client has no way for its arrays");  // the worker may have it already
    throw;
  }
}

std::string RemoteGpu::data_encrypted_by() const { return held().plain ? "" : encrypted_by(); }

}  // namespace waywiser
