#include <array>

#include "waywiser/base/crypto.hpp"
#include "waywiser/offload/remote_gpu_state.hpp"
#include "waywiser/offload/secret_pair.hpp"

namespace waywiser {

std::uint64_t RemoteGpu::new_stream() {
  const auto alone = state_->alone("new_stream");
  return ++state_->last;
}

std::uint64_t RemoteGpu::new_event() {
  const auto alone = state_->alone("new_event");
  return ++state_->last;
}

void RemoteGpu::use_stream(std::uint64_t stream) {
  const auto alone = state_->alone("stream");
  state_->check_open();
  if (stream == state_->stream) return;
  state_->add("stream", requests::UseStream{{stream}});
  state_->stream = stream;
}

void RemoteGpu::record(std::uint64_t event) {
  const auto alone = state_->alone("record");
  state_->add("record", requests::Record{{event}});
}

void RemoteGpu::wait(std::uint64_t event) {
  const auto alone = state_->alone("wait");
  state_->add("wait", requests::Wait{{event}});
}

void RemoteGpu::await(std::uint64_t event) {
  const auto alone = state_->alone("await");
  state_->answer("await", requests::Await{{event}});
}

Seconds RemoteGpu::since(std::uint64_t later, std::uint64_t earlier) {
  const auto alone = state_->alone("since");
  return state_->answer("since", requests::Since{later, earlier}).since;
}

void RemoteGpu::use_plain_data(const std::function<bool()>& interrupted) {
  const auto alone = state_->alone("data_plain");
  state_->answer("data_plain");  // what encrypts is known after the first message
  if (state_->plain || state_->group.encrypted_by(worker_rank).empty()) {
    state_->wants_plain = true;
    return;
  }
  std::array<std::byte, digits_of_secret / 2> random{};
  fill_with_random(random);
  const std::string secret = hexadecimal(random);
  const RemoteReply reply = state_->answer("data_plain", requests::OpenPlain{secret});
  try {
    state_->told_as("data_plain", [&] {
      SecretPair pair;
      pair.purpose = "plain";
      pair.secret = secret;
      pair.root = parse_endpoint(reply.address);
      pair.encrypt = false;
      pair.timeout = state_->group.timeout();
      pair.interrupted = interrupted;
      state_->plain.emplace(pair.join());
      state_->wants_plain = true;
    });
  } catch (...) {
    state_->group.abort("the client has no way for its arrays");  // the worker may have it already
    throw;
  }
}

std::string RemoteGpu::data_encrypted_by() const { return state_->plain ? "" : encrypted_by(); }

}  // namespace waywiser
