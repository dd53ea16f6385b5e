// The control line between two processes of one machine: JSON behind a head, with file descriptors.
#include <fcntl.h>
#include <sys/socket.h>

#include "tests/fuzz/targets.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/topology/network_side.hpp"
#include "waywiser/transport/memory_message.hpp"

namespace waywiser::fuzz {
namespace {

constexpr std::size_t whole_message = 128;  // the first byte from here on: the head is made to fit

void read_all(PeerChannel& channel) {
  for (;;) {
    auto [message, descriptors] = channel.receive(Deadline::in(10));
    reads_or_refuses([&] {
      const MemoryHandle handle = memory_handle_from_json(require(message, "handle", "message"), descriptors);
      std::vector<Descriptor> again;
      if (handle.descriptor.open()) again.emplace_back(::dup(handle.descriptor.number()));
      const Json written = to_json(handle);
      promise(to_json(memory_handle_from_json(written, again)) == written, "a handle that changes by writing");
    });
    reads_or_refuses([&] { network_side_from_json(message, "message"); });
  }
}

// All written bytes can be read after the writer has gone.
void write_all(Descriptor socket, Bytes bytes) {
  promise(::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
          "the socket does not take an input");
}

}  // namespace

void peer_messages(Bytes input) {
  Choices choices(input);
  const std::size_t how = choices.number();
  auto [ours, theirs] = PeerChannel::socket_pair();
  PeerChannel channel(std::move(ours));
  constexpr std::size_t most = 100'000;  // what a socket holds
  if (how < whole_message) {
    write_all(std::move(theirs), choices.bytes(most));
  } else {
    const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Json value;
    if (!reads_or_refuses([&] { value = parse_json(text_of(choices.bytes(most)), "message"); })) return;
    PeerChannel(std::move(theirs)).send(value, Deadline::in(10), std::vector<int>(how % 8, null.number()));
  }
  try {
    read_all(channel);
  } catch (const Error& error) {  // io: it has gone
    promise(error.kind() == ErrorKind::invalid_input || error.kind() == ErrorKind::io, error.what());
  }
}

}  // namespace waywiser::fuzz
