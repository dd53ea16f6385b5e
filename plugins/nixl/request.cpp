#include "request.hpp"

#include <algorithm>
#include <climits>
#include <thread>

#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr std::size_t most_part_bytes_by_gpu = std::size_t{1} << 30;  // few, as each waits for the GPU at its end
constexpr std::size_t most_part_ranges = IOV_MAX;                     // of a system call

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

void append(std::vector<MemoryNumber>& numbers, std::size_t first, MemoryNumber number) {
  if (numbers.size() == first || !(numbers.back() == number)) numbers.push_back(number);
}

template <typename T>
const T& known(const Metadata* metadata) {
  const auto* found = dynamic_cast<const T*>(metadata);
  if (found == nullptr) throw Refusal(Status::invalid, "a memory of a transfer is not registered");
  return *found;
}

// Holds memories of a table while it lives.
class Held {
 public:
  Held(const MemoryTable& table, const MemoryNumber* first, const MemoryNumber* last) : table_(table), first_(first) {
    for (held_ = first; held_ != last; ++held_)
      if (!table.hold(*held_)) {
        release();
        throw Refusal(Status::not_found, "a memory of a transfer has been deregistered");
      }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { release(); }

 private:
  void release() const {
    for (const MemoryNumber* each = first_; each != held_; ++each) table_.let_go(*each);
  }
  const MemoryTable& table_;
  const MemoryNumber *first_, *held_ = nullptr;
};

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

void OwnMemory::lock_pages(const MemoryBounds& bounds) const {
  std::call_once(once_, [&] {
    if (const GpuDriver* gpu = GpuDriver::find())
      pages_.emplace(*gpu, reinterpret_cast<void*>(bounds.address), bounds.bytes);
  });
}

Request::Request(Operation operation, const KnownRanges& local, const KnownRanges& remote,
                 std::shared_ptr<MemoryTable> own_table)
    : operation_(operation),
      local_on_gpu_(local.kind == MemoryKind::vram),
      remote_on_gpu_(remote.kind == MemoryKind::vram),
      most_part_bytes_(remote_on_gpu_ ? most_part_bytes_by_gpu : Peer::most_part_bytes),
      own_table_(std::move(own_table)),
      ranges_(local.all.size()) {
  if (ranges_ == 0 || remote.all.size() != ranges_)
    throw Refusal(Status::invalid, "a transfer has as many ranges here as there, and at least one");
  peer_ = known<PeerMemory>(remote.all.front().metadata).peer;
  if (!peer_) throw Refusal(Status::not_supported, "an agent of a transfer cannot be reached");
  LastBounds here(*own_table_), there(peer_->table());
  for (std::size_t i = 0; i < ranges_; ++i) {
    const auto& own = known<OwnMemory>(local.all[i].metadata);
    const auto& theirs = known<PeerMemory>(remote.all[i].metadata);
    if (theirs.peer != peer_) throw Refusal(Status::invalid, "a transfer has one other agent");
    if (local.all[i].bytes != remote.all[i].bytes)
      throw Refusal(Status::mismatch, "two ranges of a transfer have different lengths");
    const MemoryBounds& mine = here.check(own.number, local.all[i]);
    if (remote_on_gpu_ && !local_on_gpu_) own.lock_pages(mine);
    const MemoryBounds& its = there.check(theirs.number, remote.all[i]);
    const std::uintptr_t address = remote.all[i].address;
    add(local.all[i].address, own.number,
        theirs.allocation == 0 ? address : theirs.allocation + its.offset + (address - its.address), theirs.number,
        local.all[i].bytes);
  }
  end_part();
}

void Request::add(std::uintptr_t local, MemoryNumber own, std::uintptr_t remote, MemoryNumber theirs,
                  std::size_t length) {
  bytes_ += length;
  for (std::size_t done = 0; done < length;) {
    const Ends before = parts_.empty() ? Ends{} : parts_.back();
    if (part_bytes_ == most_part_bytes_ || local_.size() - before.local == most_part_ranges ||
        remote_.size() - before.remote == most_part_ranges) {
      end_part();
      continue;
    }
    const std::size_t bytes = std::min(length - done, most_part_bytes_ - part_bytes_);
    append(local_, before.local, local + done, bytes);
    append(remote_, before.remote, remote + done, bytes);
    append(own_memories_, before.own_memories, own);
    append(peer_memories_, before.peer_memories, theirs);
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
  const Held own(*own_table_, own_memories_.data() + from.own_memories, own_memories_.data() + to.own_memories);
  const Held theirs(peer_->table(), peer_memories_.data() + from.peer_memories,
                    peer_memories_.data() + to.peer_memories);
  if (from.local != to.local)
    peer_->copy(operation_, {between(local_, from.local, to.local), local_on_gpu_},
                {between(remote_, from.remote, to.remote), remote_on_gpu_});
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
