#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/storage/blocks.hpp"
#include "waywiser/storage/ring.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

// The pieces of one call. Memory is the caller's: run() ends when nothing is under way any more.
class RingRun {
 public:
  RingRun(Ring& ring, std::vector<Mapping>& bounces, FileUse use, const StorageFile& file)
      : ring_(ring), bounces_(bounces), use_(use), file_(file), slots_(bounces.size()) {}

  void run(const std::vector<FilePart>& pieces) {
    std::size_t next = 0;
    for (std::size_t slot = 0; slot < slots_.size() && next < pieces.size(); ++slot) begin(slot, pieces[next++]);
    while (under_way_ != 0) {
      wait_for_one();
      while (const std::optional<Ring::Completion> done = ring_.next()) {
        const auto slot = static_cast<std::size_t>(done->id);
        --under_way_;
        if (ended(slot, done->result) && next < pieces.size() && !failed_) begin(slot, pieces[next++]);
      }
    }
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  // If the ring fails, what it has taken goes on all the same: its ends come without a call to the ring.
  void wait_for_one() {
    try {
      if (ring_works_) return ring_.submit(1);
    } catch (...) {
      failed_ = std::current_exception();
      ring_works_ = false;
    }
    under_way_ -= ring_.withdraw();
    std::this_thread::yield();
  }

  void begin(std::size_t slot, const FilePart& piece) {
    try {
      slots_[slot].emplace(use_, file_, piece, bounces_[slot]);
    } catch (...) {
      failed_ = std::current_exception();
      return;
    }
    add(slot);
  }

  void add(std::size_t slot) {
    const BlockTransfer& rest = *slots_[slot];
    ring_.add({use_, file_.direct_descriptor(), rest.memory(), rest.bytes(), rest.offset(), slot});
    ++under_way_;
  }

  // Whether the slot is free.
  bool ended(std::size_t slot, int result) {
    try {
      if (result == -EINTR || result == -EAGAIN)
        result = 0;
      else if (result < 0)
        file_.fail(use_, slots_[slot]->piece(), std::generic_category().message(-result));
      else if (slots_[slot]->moved(static_cast<Bytes>(result), file_))
        return true;
    } catch (...) {
      if (!failed_) failed_ = std::current_exception();
      return true;
    }
    add(slot);
    return false;
  }

  Ring& ring_;
  std::vector<Mapping>& bounces_;
  FileUse use_;
  const StorageFile& file_;
  std::vector<std::optional<BlockTransfer>> slots_;
  std::size_t under_way_ = 0;
  bool ring_works_ = true;
  std::exception_ptr failed_;
};

class IoUring final : public FileRoad {
 public:
  explicit IoUring(const RoadShape& shape) : shape_(shape), bounces_(shape.count) {}

  void run(FileUse use, const StorageFile& file, std::span<const FilePart> parts) override {
    if (!ring_) ring_ = std::make_unique<Ring>(shape_.count);
    RingRun(*ring_, bounces_, use, file).run(direct_pieces(use, file, parts, shape_.chunk));
    if (use == FileUse::write) write_rest(file, parts);
  }

 private:
  RoadShape shape_;
  std::unique_ptr<Ring> ring_;
  std::vector<Mapping> bounces_;  // of each piece under way
};

std::optional<std::string> why_not_io_uring(const StorageFile& file, FileUse) {
  if (file.why_not_direct()) return file.why_not_direct();
  static const std::optional<std::string> why_no_ring = Ring::why_not();
  return why_no_ring;
}

}  // namespace

StorageMechanism io_uring_mechanism() {
  return {"io_uring", "One thread keeps several pieces under way past the page cache (io_uring, O_DIRECT).",
          why_not_io_uring, [](const Way& way) -> std::unique_ptr<FileRoad> {
            return std::make_unique<IoUring>(road_shape(way, "depth", {Bytes{256} << 10, 32}));
          }};
}

}  // namespace waywiser
