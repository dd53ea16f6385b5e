#include "request.hpp"

#include <algorithm>
#include <climits>
#include <thread>

#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr std::size_t most_part_bytes_by_gpu = std::size_t{1} << 30;  // few, as each waits for the GPU at its end
constexpr std::size_t most_part_ranges = IOV_MAX;                     // of a system call
// An order and its answer wake four threads, which takes longer than to copy less through a buffer.
constexpr std::size_t least_bytes_by_owner = std::size_t{512} << 10;

// Joins it to the range before it if it lies behind it.
void append(std::vector<iovec>& ranges, std::size_t first, std::uintptr_t address, std::size_t bytes) {
  if (ranges.size() > first) {
    iovec& last = ranges.back();
    if (reinterpret_cast<std::uintptr_t>(last.iov_base) + last.iov_len == address) {
      last.iov_len += bytes;
      return;
    }
  }
  ranges.push_back({reinterpret_cast<void*>(address), bytes});
}

// Whether it is another one than the last.
bool append(std::vector<MemoryNumber>& numbers, std::size_t first, MemoryNumber number) {
  const bool is_new = numbers.size() == first || !(numbers.back() == number);
  if (is_new) numbers.push_back(number);
  return is_new;
}

std::size_t all_bytes(const KnownRanges& ranges) {
  std::size_t bytes = 0;
  for (const auto& each : ranges.all) bytes += each.bytes;
  return bytes;
}

template <typename T>
const T& known(const Metadata* metadata) {
  const auto* found = dynamic_cast<const T*>(metadata);
  if (found == nullptr) throw Refusal(Status::invalid, "a memory of a transfer is not registered");
  return *found;
}

// The bounds of the memory that was asked for last: descriptors of one memory mostly lie together.
class LastBounds {
 public:
  explicit LastBounds(const MemoryTable& table) : table_(table) {}
  const MemoryBounds& check(MemoryNumber number, const Range& range) {
    if (!known_ || !(number == number_)) {
      if (!table_.bounds(number, bounds_)) refuse();
      known_ = true;
      number_ = number;
    }
    if (range.address < bounds_.address || range.bytes > bounds_.bytes ||
        range.address - bounds_.address > bounds_.bytes - range.bytes)
      refuse();
    return bounds_;
  }

 private:
  [[noreturn]] static void refuse() {
    throw Refusal(Status::not_found, "a range of a transfer is not in the registered memory");
  }
  const MemoryTable& table_;
  MemoryNumber number_;
  bool known_ = false;
  MemoryBounds bounds_;
};

template <typename T>
std::span<const T> between(const std::vector<T>& all, std::size_t from, std::size_t to) {
  return std::span(all).subspan(from, to - from);
}

}  // namespace

Request::Request(Operation operation, const KnownRanges& local, const KnownRanges& remote,
                 std::shared_ptr<OwnMemoryTable> own_table)
    : operation_(operation),
      local_on_gpu_(local.kind == MemoryKind::vram),
      remote_on_gpu_(remote.kind == MemoryKind::vram),
      own_table_(std::move(own_table)),
      ranges_(local.all.size()) {
  if (ranges_ == 0 || remote.all.size() != ranges_)
    throw Refusal(Status::invalid, "a transfer has as many ranges here as there, and at least one");
  peer_ = known<PeerMemory>(remote.all.front().metadata).peer;
  if (!peer_) throw Refusal(Status::not_supported, "an agent of a transfer cannot be reached");
  by_owner_ = local_on_gpu_ && !remote_on_gpu_ && peer_->takes_orders() && all_bytes(local) >= least_bytes_by_owner;
  most_part_bytes_ = remote_on_gpu_ || by_owner_ ? most_part_bytes_by_gpu : Peer::most_part_bytes;
  LastBounds here(*own_table_), there(peer_->table());
  for (std::size_t i = 0; i < ranges_; ++i) {
    const auto& own = known<OwnMemory>(local.all[i].metadata);
    const auto& theirs = known<PeerMemory>(remote.all[i].metadata);
    if (theirs.peer != peer_) throw Refusal(Status::invalid, "a transfer has one other agent");
    if (local.all[i].bytes != remote.all[i].bytes)
      throw Refusal(Status::mismatch, "two ranges of a transfer have different lengths");
    const MemoryBounds& mine = here.check(own.number, local.all[i]);
    if (remote_on_gpu_ && !local_on_gpu_) own_table_->lock_pages(own.number);
    const MemoryBounds& its = there.check(theirs.number, remote.all[i]);
    const std::uintptr_t address = remote.all[i].address;
    add({local.all[i].address,
         theirs.allocation == 0 ? address : theirs.allocation + its.offset + (address - its.address), own.number,
         theirs.number, local.all[i].bytes},
        {own.shared, mine.address, mine.bytes});
  }
  end_part();
}

// An order names the memory of each range: there neighbours of several memories are not joined.
void Request::add(const Piece& piece, const OrderedGpuMemory& on_gpu) {
  bytes_ += piece.bytes;
  for (std::size_t done = 0; done < piece.bytes;) {
    const Ends before = parts_.empty() ? Ends{} : parts_.back();
    if (part_bytes_ == most_part_bytes_ || local_.size() - before.local == most_part_ranges ||
        remote_.size() - before.remote == most_part_ranges) {
      end_part();
      continue;
    }
    const std::size_t bytes = std::min(piece.bytes - done, most_part_bytes_ - part_bytes_);
    const bool is_new = append(own_memories_, before.own_memories, piece.own);
    const bool is_new_there = append(peer_memories_, before.peer_memories, piece.theirs);
    if (is_new && by_owner_) own_on_gpu_.push_back(on_gpu);
    append(local_, by_owner_ && is_new ? local_.size() : before.local, piece.local + done, bytes);
    append(remote_, by_owner_ && is_new_there ? remote_.size() : before.remote, piece.remote + done, bytes);
    part_bytes_ += bytes;
    done += bytes;
  }
}

void Request::end_part() {
  parts_.push_back({local_.size(), remote_.size(), own_memories_.size(), peer_memories_.size()});
  part_bytes_ = 0;
}

bool Request::begin(bool notifies, std::string message) {
  const std::lock_guard lock(starting_);
  if (status() == Status::in_progress) return false;
  notifies_ = notifies;
  message_ = std::move(message);
  failure_ = Status::success;
  over_ = 0;
  begun_ = Clock::now();
  status_ = Status::in_progress;
  taken_.store(0, std::memory_order_release);  // from here on parts are taken
  return true;
}

bool Request::copy_one_part() noexcept {
  ++copying_;
  const std::size_t part = taken_.fetch_add(1, std::memory_order_acq_rel);
  const bool mine = part < parts_.size();
  if (mine) {
    if (failure_.load(std::memory_order_relaxed) == Status::success) {
      const Status status = copy(part);
      if (status != Status::success) failure_ = status;
    }
    if (over_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts_.size()) finish();
  }
  --copying_;
  return mine;
}

Status Request::copy(std::size_t part) noexcept {
  return told([&] {
    copy_held(part == 0 ? Ends{} : parts_[part - 1], parts_[part]);
    return Status::success;
  });
}

void Request::copy_held(Ends from, Ends to) {
  struct Both {
    HeldMemories own, theirs;
    Both(const Request& of, Ends from, Ends to)
        : own(of.own_table_, between(of.own_memories_, from.own_memories, to.own_memories)),
          theirs(of.peer_->shared_table(), between(of.peer_memories_, from.peer_memories, to.peer_memories)) {}
  };
  const auto held = std::make_shared<const Both>(*this, from, to);
  if (from.local == to.local || (by_owner_ && peer_->order(order_of(from, to), held))) return;
  peer_->copy(operation_, {between(local_, from.local, to.local), local_on_gpu_},
              {between(remote_, from.remote, to.remote), remote_on_gpu_});
}

CopyOrder Request::order_of(Ends from, Ends to) const {
  const auto copy = [](const auto& all, std::size_t first, std::size_t last) {
    return std::vector(all.begin() + static_cast<std::ptrdiff_t>(first),
                       all.begin() + static_cast<std::ptrdiff_t>(last));
  };
  CopyOrder order;
  order.operation = operation_;
  order.gpu_memories = copy(own_on_gpu_, from.own_memories, to.own_memories);
  order.host_memories = copy(peer_memories_, from.peer_memories, to.peer_memories);
  order.gpu_ranges = copy(local_, from.local, to.local);
  order.host_ranges = copy(remote_, from.remote, to.remote);
  return order;
}

void Request::finish() noexcept {
  Status status = failure_;
  if (status == Status::success && notifies_)
    status = told([this] {
      peer_->notify(message_);
      return Status::success;
    });
  seconds_ = std::chrono::duration<double>(Clock::now() - begun_).count();
  status_.store(status, std::memory_order_release);
}

void Request::cancel() noexcept {
  failure_ = Status::canceled;
  const std::size_t taken = std::min(taken_.fetch_add(parts_.size(), std::memory_order_acq_rel), parts_.size());
  const std::size_t left = parts_.size() - taken;
  if (left > 0 && over_.fetch_add(left, std::memory_order_acq_rel) + left == parts_.size()) finish();
  while (copying_.load(std::memory_order_acquire) != 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace waywiser_nixl
