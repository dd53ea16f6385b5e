#include "peer.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "pieces.hpp"
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
  for_pieces(local, remote, [operation](char* mine, char* theirs, std::size_t bytes) {
    std::memmove(operation == Operation::read ? mine : theirs, operation == Operation::read ? theirs : mine, bytes);
  });
}

std::string why_forbidden() {
  std::string scope;
  std::getline(std::ifstream("/proc/sys/kernel/yama/ptrace_scope"), scope);
  const std::string yama = scope.empty() || scope == "0" ? "" : " (kernel.yama.ptrace_scope is " + scope + ")";
  return "this process may not copy from and to that one's memory" + yama + "; `waywiser doctor` tells more";
}

}  // namespace

// Memory of this process on the way of a part: neither the GPU nor the system call reaches from the one to the other.
class Peer::BounceBuffer {
 public:
  explicit BounceBuffer(const GpuDriver& gpu) : bytes_(most_part_bytes), pages_(gpu, bytes_.data(), bytes_.size()) {}
  iovec for_bytes(std::size_t bytes) { return {bytes_.data(), bytes}; }

 private:
  std::vector<char> bytes_;
  LockedPages pages_;
};

std::unique_ptr<Peer::BounceBuffer> Peer::take_buffer() const {
  {
    const std::lock_guard lock(resting_);
    if (!buffers_.empty()) {
      std::unique_ptr<BounceBuffer> found = std::move(buffers_.back());
      buffers_.pop_back();
      return found;
    }
  }
  return std::make_unique<BounceBuffer>(*gpu_);
}

Peer::Peer(std::shared_ptr<MemoryTable> table, Keep keep)
    : table_(std::move(table)), keep_(std::move(keep)), here_(true) {}

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

void Peer::copy(Operation operation, Memories local, Memories remote) const {
  if (!local.on_gpu && !remote.on_gpu) return copy_on_host(operation, local.ranges, remote.ranges);
  if (gone()) throw Refusal(Status::disconnected, "process " + std::to_string(process_) + " has ended");
  if (remote.on_gpu || here_) return gpu_->copy(operation, local.ranges, remote.ranges);
  std::unique_ptr<BounceBuffer> buffer = take_buffer();
  const iovec between = buffer->for_bytes(bytes_of(local.ranges));
  const auto on_gpu = [&] { gpu_->copy(operation, local.ranges, {&between, 1}); };
  if (operation == Operation::write) on_gpu();
  copy_on_host(operation, {&between, 1}, remote.ranges);
  if (operation == Operation::read) on_gpu();
  const std::lock_guard lock(resting_);
  buffers_.push_back(std::move(buffer));
}

std::uint64_t Peer::open_gpu_memory(const GpuExport& shared) {
  if (gpu_ == nullptr) throw Refusal(Status::not_supported, "this process has no driver of CUDA");
  const std::lock_guard lock(opening_);
  const auto [found, is_new] = opened_.try_emplace(shared.handle, 0);
  if (!is_new) return found->second;
  try {
    return found->second = gpu_->open(shared);
  } catch (const Refusal&) {
    opened_.erase(found);
    throw;
  }
}

Peer::~Peer() {
  for (const auto& each : opened_) gpu_->close(each.second);
}

void Peer::copy_on_host(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const {
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
