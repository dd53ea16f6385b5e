#include "post_office.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "quiet_thread.hpp"
#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr std::size_t most_kept_bytes = std::size_t{256} << 20;
constexpr std::size_t most_callers = 65536;
constexpr std::size_t read_bytes = 65536;
// What an event is about: these two, or a peer or a caller by number.
constexpr std::uint64_t stop = 0, knock = 1, first_number = 2, of_peers = std::uint64_t{1} << 63;

Proof new_proof() {
  Proof made;
  if (::getrandom(&made, sizeof made, 0) != static_cast<ssize_t>(sizeof made))
    throw Refusal(Status::backend_error, "no random numbers");
  return made;
}

}  // namespace

PostOffice::PostOffice(const std::string& socket_name, const std::shared_ptr<OwnMemoryTable>& table)
    : listener_(listen_at(socket_name)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      table_descriptor_(table->descriptor()),
      proof_(new_proof()),
      copies_(table) {
  if (!events_ || !stop_event_ || !listen_to(stop_event_.number(), stop) || !listen_to(listener_.number(), knock))
    throw Refusal(Status::backend_error, "no events of sockets");
  thread_ = quiet_thread([this] { run(); });
}

PostOffice::~PostOffice() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  taken_.notify_all();
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_event_.number(), &one, sizeof one);
  thread_.join();
}

bool PostOffice::listen_to(int socket, std::uint64_t number) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = number;
  return ::epoll_ctl(events_.number(), EPOLL_CTL_ADD, socket, &event) == 0;
}

// The end of this socket ends the watch.
void PostOffice::watch(const std::shared_ptr<Peer>& peer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(peers_, [](const auto& each) { return each.second.expired(); });
  const std::uint64_t number = of_peers | next_peer_++;
  peers_[number] = peer;
  if (!listen_to(peer->socket().number(), number)) throw Refusal(Status::backend_error, "no events of a socket");
}

void PostOffice::hear_peer(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(number);
  if (found == peers_.end()) return;
  if (const auto peer = found->second.lock()) {
    if (peer->hear()) return;
    peer->set_ended();
    ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, peer->socket().number(), nullptr);
  }
  peers_.erase(found);
}

void PostOffice::keep(const std::string& agent, std::string message) {
  const std::lock_guard lock(mutex_);
  kept_bytes_ += message.size();
  kept_.emplace_back(agent, std::move(message));
}

Notifications PostOffice::take() {
  Notifications taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(kept_);
    kept_bytes_ = 0;
  }
  if (!taken.empty()) taken_.notify_all();
  return taken;
}

void PostOffice::run() {
  std::array<epoll_event, 64> events{};
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      taken_.wait(lock, [this] { return stopped_ || kept_bytes_ <= most_kept_bytes; });
      if (stopped_) return;
    }
    const int count = ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
      if (number == knock) {
        accept_callers();
      } else if ((number & of_peers) != 0) {
        hear_peer(number);
      } else if (const auto caller = callers_.find(number); caller != callers_.end() && !hear(caller->second)) {
        callers_.erase(caller);
      }
    }
  }
}

void PostOffice::accept_callers() {
  for (;;) {
    Socket accepted(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted) {
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    }
    if (callers_.size() >= most_callers || other_end(accepted).user != ::geteuid()) continue;
    const std::uint64_t number = first_number + next_caller_++;
    if (!listen_to(accepted.number(), number)) continue;
    callers_[number] = std::make_shared<Caller>(std::move(accepted));
  }
}

bool PostOffice::hear(const std::shared_ptr<Caller>& caller) try {
  static thread_local std::array<char, read_bytes> room;
  const ssize_t got = ::recv(caller->socket.number(), room.data(), room.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  caller->read.append(room.data(), static_cast<std::size_t>(got));
  return understand(caller);
} catch (const std::bad_alloc&) {
  return false;
}

bool PostOffice::understand(const std::shared_ptr<Caller>& caller) {
  std::string& read = caller->read;
  if (!caller->greeted && !greet(*caller)) return false;
  std::size_t done = 0;
  while (caller->greeted) {
    std::uint64_t head = 0;
    if (read.size() - done < sizeof head) break;
    std::memcpy(&head, read.data() + done, sizeof head);
    const bool orders = (head & is_order) != 0;
    const std::uint64_t bytes = head & ~is_order;
    if (bytes > (orders ? longest_order : longest_notification)) return false;
    if (read.size() - done - sizeof head < bytes) break;
    const std::string_view body = std::string_view(read).substr(done + sizeof head, bytes);
    if (!orders)
      keep(caller->agent, std::string(body));
    else if (!take_order(caller, body))
      return false;
    done += sizeof head + bytes;
  }
  read.erase(0, done);
  return true;
}

bool PostOffice::take_order(const std::shared_ptr<Caller>& caller, std::string_view text) {
  auto order = order_from(text);
  if (!order || order->key != proof_.key) return false;
  copies_.give(caller, std::move(*order));
  return true;
}

bool PostOffice::greet(Caller& caller) const {
  Greeting greeting{};
  if (caller.read.size() < sizeof greeting) return true;
  std::memcpy(&greeting, caller.read.data(), sizeof greeting);
  if (greeting.magic != magic || greeting.name_bytes > longest_name) return false;
  if (caller.read.size() < sizeof greeting + greeting.name_bytes) return true;
  caller.agent = caller.read.substr(sizeof greeting, greeting.name_bytes);
  caller.read.erase(0, sizeof greeting + greeting.name_bytes);
  caller.greeted = true;
  const std::uint64_t has_driver = GpuDriver::find() != nullptr ? 1 : 0;
  return send_reply(caller.socket.number(), {magic, reinterpret_cast<std::uint64_t>(&proof_), proof_.word, has_driver},
                    table_descriptor_);
}

}  // namespace waywiser_nixl
