#include "waywiser/comm/peer_memory/handle_exchange.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/runtime_folder.hpp"
#include "waywiser/transport/memory_message.hpp"

namespace waywiser {
namespace {

constexpr Seconds socket_patience = 10;
constexpr int waiting_members = 512;

using SocketPath = std::array<char, sizeof(sockaddr_un::sun_path)>;

sockaddr_un address_of(const SocketPath& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  address.sun_path[path.size() - 1] = '\0';
  return address;
}

Descriptor unix_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) throw Error(ErrorKind::io, "no socket: " + last_system_error());
  return socket;
}

// The place where one rank gives its handle away; removed with this object.
class Counter {
 public:
  Counter(int rank, const Call& call) {
    const std::string text =
        (runtime_folder() / ("handle-" + std::to_string(::getpid()) + "-" + std::to_string(rank) + "-" +
                             std::to_string(call.group) + "-" + std::to_string(call.sequence) + ".sock"))
            .string();
    if (text.size() >= path_.size()) throw Error(ErrorKind::io, text + ": too long for the name of a socket");
    std::memcpy(path_.data(), text.data(), text.size());
    ::unlink(path_.data());
    const sockaddr_un address = address_of(path_);
    if (::bind(listener_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.number(), waiting_members) != 0)
      throw Error(ErrorKind::io, text + ": " + last_system_error());
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() { ::unlink(path_.data()); }

  const SocketPath& path() const { return path_; }
  // True: one more rank has been served.
  bool serve(const MemoryHandle& handle) {
    Descriptor customer(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!customer.open()) return false;
    std::vector<int> numbers;
    if (handle.descriptor.open()) numbers.push_back(handle.descriptor.number());
    PeerChannel(std::move(customer)).send({{"handle", to_json(handle)}}, Deadline::in(socket_patience), numbers);
    return true;
  }

 private:
  Descriptor listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  SocketPath path_{};
};

PeerChannel go_to(const SocketPath& path) {
  Descriptor socket = unix_socket();
  const sockaddr_un address = address_of(path);
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error(ErrorKind::io, std::string(address.sun_path) + ": " + last_system_error());
  return PeerChannel(std::move(socket));
}

void check_one_machine(const Session& session, const Members& members) {
  for (const int world : members.world)
    if (!session.same_machine(world))
      throw Error(ErrorKind::unavailable, "GPU memory can be exposed to ranks of one machine only: rank " +
                                              std::to_string(world) + " is on " + session.introduction(world).host);
}

}  // namespace

std::vector<MemoryHandle> exchange_handles(RankExchange& exchange, Session& session, const Members& members,
                                           const Call& call, const MemoryHandle& mine) {
  check_one_machine(session, members);
  Counter counter(session.rank(), call);
  const auto ranks = static_cast<std::size_t>(members.size());
  std::vector<char> paths(ranks * sizeof(SocketPath));
  exchange.all_gather(std::as_bytes(std::span(counter.path())), std::as_writable_bytes(std::span(paths)));
  std::vector<PeerChannel> visits;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    SocketPath path{};
    std::memcpy(path.data(), paths.data() + rank * path.size(), path.size());
    visits.push_back(go_to(path));
  }
  std::size_t served = 0;
  session.wait(
      call,
      [&] {
        if (served < ranks && counter.serve(mine)) ++served;
        return served == ranks;
      },
      [&] { return std::to_string(served) + " of " + std::to_string(ranks) + " ranks have fetched the handle"; });
  std::vector<MemoryHandle> handles;
  for (PeerChannel& visit : visits) {
    auto [message, descriptors] = visit.receive(Deadline::in(session.timeout()));
    handles.push_back(memory_handle_from_json(require(message, "handle", "handle of a rank's memory"), descriptors));
  }
  return handles;
}

}  // namespace waywiser
