#include "owner_copies.hpp"

#include "pieces.hpp"
#include "quiet_thread.hpp"
#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr std::chrono::seconds patience{10};

bool lies_in(const iovec& range, std::uint64_t address, std::uint64_t bytes) {
  const auto at = reinterpret_cast<std::uint64_t>(range.iov_base);
  return at >= address && range.iov_len <= bytes && at - address <= bytes - range.iov_len;
}

// The memory in which the range lies, from the one before on: ranges stand in the order of their memories.
template <typename Memories, typename Bounds>
std::size_t memory_of(const iovec& range, const Memories& memories, std::size_t from, const Bounds& bounds) {
  for (; from < memories.size(); ++from) {
    const auto [address, bytes] = bounds(memories[from]);
    if (lies_in(range, address, bytes)) return from;
  }
  throw Refusal(Status::not_found, "a range of a transfer is not in the registered memory");
}

using AddressAndBytes = std::pair<std::uint64_t, std::uint64_t>;

}  // namespace

Caller::~Caller() {
  for (const auto& each : opened_) GpuDriver::find()->close(each.second);
}

std::uint64_t Caller::open(const GpuDriver& gpu, const GpuExport& shared) {
  const auto found = opened_.find(shared.handle);
  if (found != opened_.end()) return found->second;
  try {
    return opened_[shared.handle] = gpu.open(shared);
  } catch (const Refusal& refusal) {
    opened_.erase(shared.handle);
    throw Refusal(Status::not_supported, refusal.what());
  }
}

OwnerCopies::~OwnerCopies() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  given_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void OwnerCopies::give(std::shared_ptr<Caller> caller, CopyOrder order) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back({std::move(caller), std::move(order)});
    if (!thread_.joinable()) thread_ = quiet_thread([this] { run(); });
  }
  given_.notify_all();
}

void OwnerCopies::run() {
  for (;;) {
    Given next;
    {
      std::unique_lock lock(mutex_);
      given_.wait(lock, [this] { return stopped_ || !orders_.empty(); });
      if (stopped_) return;
      next = std::move(orders_.front());
      orders_.pop_front();
    }
    const Status status = told([&] { return carry_out(*next.caller, next.order); });
    const OrderAnswer answer{next.order.number, static_cast<std::int64_t>(status)};
    // Who does not take it has ended, or hangs: its end is seen where callers are heard.
    send_all(next.caller->socket, {reinterpret_cast<const char*>(&answer), sizeof answer}, Clock::now() + patience);
  }
}

Status OwnerCopies::carry_out(Caller& caller, const CopyOrder& order) const {
  const GpuDriver* gpu = GpuDriver::find();
  if (gpu == nullptr) throw Refusal(Status::not_supported, "this process has no driver of CUDA");
  const HeldMemories held(table_, order.host_memories);
  check_host(order);
  const std::vector<iovec> on_gpu = ranges_here(caller, *gpu, order);
  for (const MemoryNumber& each : order.host_memories) table_->lock_pages(each);
  const Operation mirrored = order.operation == Operation::write ? Operation::read : Operation::write;
  gpu->copy(mirrored, order.host_ranges, on_gpu);
  return Status::success;
}

void OwnerCopies::check_host(const CopyOrder& order) const {
  if (bytes_of(order.host_ranges) != bytes_of(order.gpu_ranges))
    throw Refusal(Status::mismatch, "an order has different lengths");
  const auto bounds_of = [this](MemoryNumber number) -> AddressAndBytes {
    MemoryBounds found;
    table_->bounds(number, found);
    return {found.address, table_->is_host(number) ? found.bytes : 0};
  };
  std::size_t memory = 0;
  for (const iovec& each : order.host_ranges) memory = memory_of(each, order.host_memories, memory, bounds_of);
}

std::vector<iovec> OwnerCopies::ranges_here(Caller& caller, const GpuDriver& gpu, const CopyOrder& order) {
  std::vector<std::uint64_t> bases;
  for (const OrderedGpuMemory& each : order.gpu_memories) {
    bases.push_back(caller.open(gpu, each.shared));
    const std::uint64_t allocated = gpu.allocated_bytes(bases.back());
    if (each.shared.offset > allocated || each.bytes > allocated - each.shared.offset)
      throw Refusal(Status::mismatch, "an order has GPU memory beyond its allocation");
  }
  const auto bounds_of = [](const OrderedGpuMemory& memory) -> AddressAndBytes {
    return {memory.address, memory.bytes};
  };
  std::vector<iovec> made;
  std::size_t memory = 0;
  for (const iovec& each : order.gpu_ranges) {
    memory = memory_of(each, order.gpu_memories, memory, bounds_of);
    const OrderedGpuMemory& of = order.gpu_memories[memory];
    const std::uint64_t into = reinterpret_cast<std::uint64_t>(each.iov_base) - of.address;
    made.push_back({reinterpret_cast<void*>(bases[memory] + of.shared.offset + into), each.iov_len});
  }
  return made;
}

}  // namespace waywiser_nixl
