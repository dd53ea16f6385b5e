#include "waywiser/offload/serve_line.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <utility>

namespace waywiser {
namespace {

constexpr std::size_t longest_text = 1 << 16;
const std::string no_key = "the server does not know this key";

}  // namespace

void throw_broken(const std::string& why) {
  if (errno == ECONNRESET || errno == EPIPE) throw TryLater(ErrorKind::io, why);
  throw Error(ErrorKind::io, why);
}

ServeLine::ServeLine(Descriptor socket) : line_(std::move(socket), largest_stranger_frame) {}

bool ServeLine::is_open() const noexcept {
  char next;
  const ssize_t got = ::recv(number(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && errno == EAGAIN);
}

void ServeLine::greet_server(std::span<const std::byte> key, Deadline deadline) {
  errno = 0;
  try {
    prove(key, deadline);
  } catch (const TryLater&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    throw_broken(std::string("the server: ") + error.what());
  }
}

void ServeLine::prove(std::span<const std::byte> key, Deadline deadline) {
  words_ = {0, random_nonce(), {}};
  line_.set_limit(longest_text);
  line_.send(FrameKind::hello, hello_bytes({protocol_version, words_.rank, words_.member}), deadline);
  words_.root = read_nonce(expect(FrameKind::challenge, deadline));
  const Secret proved = derived("waywiser serve", key);
  line_.send(FrameKind::proof, words_.member_proof(proved), deadline);
  if (!equal(read_digest(expect(FrameKind::welcome, deadline)), words_.root_proof(proved)))
    throw Error(ErrorKind::invalid_input, no_key);
  seal(words_.member_seal(proved), key);
}

Frame ServeLine::expect(FrameKind kind, Deadline deadline) {
  Frame frame = line_.receive(deadline);
  if (frame.kind == FrameKind::later) throw TryLater(ErrorKind::unavailable, "the server has too many connections");
  if (frame.kind == FrameKind::refused) throw Error(ErrorKind::invalid_input, reason_in(frame));
  if (frame.kind != kind) throw Error(ErrorKind::invalid_input, "it does not answer as a server of GPUs");
  return frame;
}

bool ServeLine::hear_client(const std::function<std::vector<std::byte>()>& key) {
  while (const auto frame = line_.poll_frame()) {
    if (!key_.empty()) {
      hear_proof(*frame);
      return true;
    }
    hear_hello(*frame);
    key_ = key();
    line_.send(FrameKind::challenge, words_.root, Deadline::in(0));
  }
  return false;
}

void ServeLine::hear_hello(const Frame& frame) {
  WireReader reader(frame.body, "a greeting");
  if (const auto theirs = reader.number<std::uint32_t>(); theirs != protocol_version)
    refuse("this server greets by protocol " + std::to_string(protocol_version) + ", the client by " +
           std::to_string(theirs) + ": install the same version at both");
  const Hello hello = read_hello(frame);
  words_ = {hello.rank, hello.nonce, random_nonce()};
}

void ServeLine::hear_proof(const Frame& frame) {
  const Secret proved = derived("waywiser serve", key_);
  if (frame.kind != FrameKind::proof || !equal(read_digest(frame), words_.member_proof(proved)))
    refuse(no_key, "a client that does not know the key");
  line_.send(FrameKind::welcome, words_.root_proof(proved), Deadline::in(0));
  seal(words_.root_seal(proved), key_);
  wipe(key_);
}

void ServeLine::refuse(const std::string& told, const std::string& why) {
  line_.ask(FrameKind::refused, refused_frame(told).body, Deadline::in(0));
  throw Error(ErrorKind::invalid_input, why.empty() ? told : why);
}

void ServeLine::seal(const Seal& seal, std::span<const std::byte> key) {
  line_.seal(seal);
  line_.set_limit(longest_text);
  secret_ = derived("waywiser remote GPU", key);
}

Secret ServeLine::derived(std::string_view purpose, std::span<const std::byte> key) const {
  WireWriter text;
  text.text(purpose);
  text.raw(words_.member);
  text.raw(words_.root);
  return Secret(hexadecimal(hmac_sha256(key, text.bytes())));
}

void ServeLine::send(std::string_view text, Deadline deadline) {
  line_.send(FrameKind::share, std::as_bytes(std::span(text)), deadline);
}

std::string ServeLine::receive(Deadline deadline) {
  const Frame frame = line_.receive(deadline);
  if (frame.kind != FrameKind::share) throw Error(ErrorKind::invalid_input, "a message of an unknown kind");
  return {reinterpret_cast<const char*>(frame.body.data()), frame.body.size()};
}

}  // namespace waywiser
