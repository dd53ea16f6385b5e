#include "peer.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr std::chrono::seconds patience{10};

// The system calls themselves: sanitizers would take the other process's addresses for those of this one.
long copy_between(pid_t process, Operation operation, std::span<const iovec> local, std::span<const iovec> remote) {
  const long call = operation == Operation::read ? SYS_process_vm_readv : SYS_process_vm_writev;
  return ::syscall(call, process, local.data(), local.size(), remote.data(), remote.size(), 0UL);
}

void copy_here(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) {
  const auto part = [](const iovec& memory, std::size_t done) { return static_cast<char*>(memory.iov_base) + done; };
  for (std::size_t i = 0, j = 0, local_done = 0, remote_done = 0; i < local.size() && j < remote.size();) {
    const std::size_t bytes = std::min(local[i].iov_len - local_done, remote[j].iov_len - remote_done);
    char *to = part(remote[j], remote_done), *from = part(local[i], local_done);
    if (operation == Operation::read) std::swap(to, from);
    std::memmove(to, from, bytes);
    local_done += bytes;
    remote_done += bytes;
    if (local_done == local[i].iov_len) ++i, local_done = 0;
    if (remote_done == remote[j].iov_len) ++j, remote_done = 0;
  }
}

std::size_t bytes_of(std::span<const iovec> memories) {
  std::size_t bytes = 0;
  for (const iovec& memory : memories) bytes += memory.iov_len;
  return bytes;
}

std::string why_forbidden() {
  std::string scope;
  std::getline(std::ifstream("/proc/sys/kernel/yama/ptrace_scope"), scope);
  const std::string yama = scope.empty() || scope == "0" ? "" : " (kernel.yama.ptrace_scope is " + scope + ")";
  return "this process may not copy from and to that one's memory" + yama + "; `waywiser doctor` tells more";
}

}  // namespace

Peer::Peer(const std::string& own_name, const AgentAddress& address) {
  if (address.machine != this_machine()) throw Refusal(Status::not_supported, "it is on another machine");
  socket_ = connect_to(address.socket);
  const OtherEnd other = other_end(socket_);
  if (other.user != ::geteuid()) throw Refusal(Status::not_supported, "it belongs to another user");
  if (other.process == 0) throw Refusal(Status::not_supported, "its process cannot be seen from this container");
  process_ = other.process;
  here_ = process_ == ::getpid();
  const auto deadline = Clock::now() + patience;
  const Greeting greeting{magic, own_name.size()};
  const std::string text(reinterpret_cast<const char*>(&greeting), sizeof greeting);
  Reply reply{};
  int descriptor = -1;
  const bool met = send_all(socket_, text + own_name, deadline) && receive_reply(socket_, reply, descriptor, deadline);
  if (descriptor >= 0) table_ = std::make_shared<MemoryTable>(descriptor);
  if (!met) throw Refusal(Status::not_supported, "it does not answer");
  if (!here_) try_memory(reply);
}

void Peer::try_memory(const Reply& reply) const {
  std::uint64_t word = 0;
  const iovec mine{&word, sizeof word}, its{reinterpret_cast<void*>(reply.word_address), sizeof word};
  const long got = copy_between(process_, Operation::read, {&mine, 1}, {&its, 1});
  if (got < 0 && (errno == EPERM || errno == ENOSYS)) throw Refusal(Status::not_supported, why_forbidden());
  if (got != sizeof word || word != reply.word) throw Refusal(Status::not_supported, "its memory cannot be read");
}

void Peer::notify(const std::string& message) {
  if (message.size() > longest_notification)
    throw Refusal(Status::invalid, "a notification has at most " + std::to_string(longest_notification) + " bytes");
  if (keep_) return keep_(message);
  const std::uint64_t bytes = message.size();
  std::string frame(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  frame += message;
  const std::lock_guard lock(sending_);
  if (!gone() && send_all(socket_, frame, Clock::now() + patience)) return;
  set_gone();  // a part of it may be on its way
  throw Refusal(Status::disconnected, "an agent of process " + std::to_string(process_) + " takes no notifications");
}

void Peer::copy(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const {
  if (here_) return copy_here(operation, local, remote);
  const std::string process = "process " + std::to_string(process_);
  if (gone()) throw Refusal(Status::disconnected, process + " has ended");
  errno = 0;
  const long copied = copy_between(process_, operation, local, remote);
  if (copied >= 0 && static_cast<std::size_t>(copied) == bytes_of(local)) return;
  if (copied < 0 && errno == ESRCH) throw Refusal(Status::disconnected, process + " has ended");
  if (copied < 0 && errno == EPERM) throw Refusal(Status::not_allowed, process + ": " + why_forbidden());
  throw Refusal(Status::backend_error,
                process + ": registered memory, here or there, is not mapped" +
                    (copied < 0 && errno != EFAULT ? std::string(": ") + std::strerror(errno) : std::string()));
}

}  // namespace waywiser_nixl
