// Rank 0 while its group forms. An input holds the actions of strangers; after them the one expected rank comes.
#include <sys/socket.h>

#include <list>
#include <thread>

#include "tests/fuzz/targets.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser::fuzz {
namespace {

constexpr double short_patience = 0.2;  // if rank 0 may already have another client in its place
constexpr std::size_t most_lines = 8;
constexpr std::size_t largest_answer = 4096;
const Secret secret{"the secret of this very job"};

// A client. Its connections are reset at the end, so that ports are not used up.
class Stranger {
 public:
  explicit Stranger(const Endpoint& root) : line_(connect_to(root, Deadline::in(patience)), largest_answer) {
    const linger none{1, 0};
    ::setsockopt(line_.number(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
  // Rank 0 may no longer listen.
  void say(Bytes bytes) { static_cast<void>(::send(line_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL)); }
  // Frames have a mark once the client has proved that it knows the secret.
  void say(FrameKind kind, Bytes body) {
    try {
      line_.send(kind, body, Deadline::in(patience));
    } catch (const Error&) {
    }
  }
  void greet() { say(FrameKind::hello, hello_bytes({protocol_version, words_.rank, words_.member})); }
  // Proves the secret. False: rank 0 has refused the client before.
  bool prove() {
    try {
      words_.root = read_nonce(line_.receive(Deadline::in(patience)));
      say(FrameKind::proof, words_.member_proof(secret));
      line_.receive(Deadline::in(patience));
    } catch (const Error&) {
      return false;
    }
    line_.seal(words_.member_seal(secret));
    return true;
  }

 private:
  Connection line_;
  Handshake words_{1, {}, {}};
};

// Whether one of them knew the secret: rank 0 may then accept it as rank 1.
bool play(Choices choices, const Endpoint& root) {
  std::list<Stranger> lines;
  bool knows = false;
  while (!choices.over()) {
    if (lines.empty()) lines.emplace_back(root);
    switch (choices.number() % 8) {
      case 0: lines.emplace_back(root); break;
      case 1: lines.back().say(choices.bytes(choices.number())); break;
      case 2: lines.back().greet(); break;
      case 3:
        lines.back().greet();
        knows = lines.back().prove() || knows;
        break;
      case 4: {
        const auto kind = static_cast<FrameKind>(choices.number());
        lines.back().say(kind, choices.bytes(choices.number()));
        break;
      }
      case 5: lines.pop_back(); break;
      case 6: lines.splice(lines.begin(), lines, std::prev(lines.end())); break;
      case 7: lines.back().say(choices.rest()); break;
    }
    if (lines.size() > most_lines) lines.pop_front();
  }
  return knows;
}

Launch launch_of(int rank, const Endpoint& root) {
  return {.launcher = "fuzz", .rank = rank, .size = 2, .job = "fuzz", .root = root, .secret = secret};
}

}  // namespace

void reception(Bytes input) {
  Endpoint root{"127.0.0.1", 0};
  bool knows = false;
  std::string trouble;
  std::thread others;
  const auto announce = [&](const Endpoint& here) {
    others = std::thread([&, here] {
      try {
        knows = play(Choices(input), here);
        const Launch launch = launch_of(1, here);
        meet(launch, introduce(launch), Deadline::in(knows ? short_patience : patience));
      } catch (const std::exception& error) {
        trouble = error.what();
      }
    });
  };
  const Launch launch = launch_of(0, root);
  std::string refused;
  try {
    promise(meet(launch, introduce(launch), Deadline::in(patience), announce).ranks.size() == 2, "not two ranks");
  } catch (const Error& error) {
    refused = error.what();
  }
  others.join();
  promise(refused.find('\n') == refused.npos, "an error of several lines: " + refused);
  promise(knows || (refused.empty() && trouble.empty()), "strangers kept a rank out: " + refused + trouble);
}

}  // namespace waywiser::fuzz
