#include "peer.hpp"

#include <sys/socket.h>
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
// Of an order: the owner may have to lock all pages of its memories first.
constexpr std::size_t least_bytes_in_a_millisecond = 1'000'000;
constexpr std::chrono::milliseconds most_patience = std::chrono::minutes(10);

Status status_from(std::int64_t number) {
  for (const Status each : {Status::success, Status::not_supported, Status::not_found, Status::mismatch})
    if (number == static_cast<std::int64_t>(each)) return each;
  return Status::backend_error;
}

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

void Peer::try_memory(const Reply& reply) {
  Proof proof;
  const iovec mine{&proof, sizeof proof}, its{reinterpret_cast<void*>(reply.proof_address), sizeof proof};
  const long got = copy_between(process_, Operation::read, {&mine, 1}, {&its, 1});
  if (got < 0 && (errno == EPERM || errno == ENOSYS)) throw Refusal(Status::not_supported, why_forbidden());
  if (got != sizeof proof || proof.word != reply.word)
    throw Refusal(Status::not_supported, "its memory cannot be read");
  key_ = proof.key;
  takes_orders_ = reply.has_driver != 0;
}

void Peer::notify(const std::string& message) {
  if (message.size() > longest_notification)
    throw Refusal(Status::invalid, "a notification has at most " + std::to_string(longest_notification) + " bytes");
  if (keep_) return keep_(message);
  if (!send_frame(0, message))
    throw Refusal(Status::disconnected, "an agent of process " + std::to_string(process_) + " takes no notifications");
}

bool Peer::send_frame(std::uint64_t kind, const std::string& body) {
  const std::uint64_t head = kind | body.size();
  std::string frame(reinterpret_cast<const char*>(&head), sizeof head);
  frame += body;
  const std::lock_guard lock(sending_);
  if (!gone() && send_all(socket_, frame, Clock::now() + patience)) return true;
  gone_.store(true, std::memory_order_release);  // a part of it may be on its way
  return false;
}

bool Peer::order(CopyOrder order, std::shared_ptr<const void> held) {
  order.key = key_;
  {
    const std::lock_guard lock(ordering_);
    order.number = ++last_order_;
    ordered_[order.number].held = std::move(held);
  }
  if (!send_frame(is_order, text_of(order))) {  // it has not come whole
    const std::lock_guard lock(ordering_);
    ordered_.erase(order.number);
    throw Refusal(Status::disconnected, "process " + std::to_string(process_) + " takes no orders to copy");
  }
  const Status status = wait_for_answer(order.number, patience_for(order));
  if (status == Status::success) return true;
  const std::string process = "process " + std::to_string(process_);
  if (status != Status::not_supported)
    throw Refusal(status, process + " has not copied between its memory and a GPU's: it says why");
  takes_orders_ = false;
  say(process + " cannot copy between its memory and a GPU's, and says why: bytes go through buffers");
  return false;
}

std::chrono::milliseconds Peer::patience_for(const CopyOrder& order) const {
  std::uint64_t bytes = bytes_of(order.host_ranges);
  for (const MemoryNumber& each : order.host_memories)
    if (MemoryBounds found; table_->bounds(each, found)) bytes += std::min<std::uint64_t>(found.bytes, 1ULL << 50);
  const auto longer = std::chrono::milliseconds(bytes / least_bytes_in_a_millisecond);
  return std::min<std::chrono::milliseconds>(patience + longer, most_patience);
}

Status Peer::wait_for_answer(std::uint64_t number, std::chrono::milliseconds longest) {
  std::unique_lock lock(ordering_);
  const auto found = ordered_.find(number);
  const auto is_over = [&] { return found->second.answer || ended_; };
  if (answered_.wait_for(lock, longest, is_over)) {
    const std::optional<Status> answer = found->second.answer;
    ordered_.erase(found);
    if (answer) return *answer;
    throw Refusal(Status::disconnected, "process " + std::to_string(process_) + " has ended");
  }
  found->second.is_late = true;  // it may be copying: the memories stay held
  throw Refusal(Status::backend_error, "process " + std::to_string(process_) +
                                           " has not answered an order to copy in " + std::to_string(longest.count()) +
                                           " ms");
}

bool Peer::hear() {
  std::array<char, 4096> room{};
  for (;;) {
    const ssize_t got = ::recv(socket_.number(), room.data(), room.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got < 0) return true;
    heard_.append(room.data(), static_cast<std::size_t>(got));
    std::size_t done = 0;
    const std::lock_guard lock(ordering_);
    for (OrderAnswer answer{}; heard_.size() - done >= sizeof answer; done += sizeof answer) {
      std::memcpy(&answer, heard_.data() + done, sizeof answer);
      const auto found = ordered_.find(answer.number);
      if (found == ordered_.end()) continue;
      found->second.answer = status_from(answer.status);
      if (found->second.is_late) ordered_.erase(found);
    }
    heard_.erase(0, done);
    answered_.notify_all();
  }
}

void Peer::set_ended() {
  gone_.store(true, std::memory_order_release);
  const std::lock_guard lock(ordering_);
  ended_ = true;
  std::erase_if(ordered_, [](const auto& each) { return each.second.is_late; });
  answered_.notify_all();
}

void Peer::copy(Operation operation, Memories local, Memories remote) const {
  if (!local.on_gpu && !remote.on_gpu) return copy_on_host(operation, local.ranges, remote.ranges);
  if (gone()) throw Refusal(Status::disconnected, "process " + std::to_string(process_) + " has ended");
  if (remote.on_gpu || here_) return gpu_->copy(operation, local.ranges, remote.ranges);
  NextRanges mine(local.ranges), its(remote.ranges);
  for (std::vector<iovec> part; !(part = mine.take(most_part_bytes)).empty();)
    copy_by_buffer(operation, part, its.take(most_part_bytes));
}

void Peer::copy_by_buffer(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const {
  std::unique_ptr<BounceBuffer> buffer = take_buffer();
  const iovec between = buffer->for_bytes(bytes_of(local));
  const auto on_gpu = [&] { gpu_->copy(operation, local, {&between, 1}); };
  if (operation == Operation::write) on_gpu();
  copy_on_host(operation, {&between, 1}, remote);
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

// What it has been asked to copy and has not answered stays held: it may be copying.
Peer::~Peer() {
  static auto* const never_let_go = new std::vector<std::shared_ptr<const void>>;
  static std::mutex mutex;
  for (auto& [_, each] : ordered_) {
    const std::lock_guard lock(mutex);
    never_let_go->push_back(std::move(each.held));
  }
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
