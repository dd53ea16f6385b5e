#include <algorithm>
#include <cerrno>
#include <cstdio>
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
  RingRun(Ring& ring, std::vector<Mapping>& bounces, bool registered, FileUse use, const StorageFile& file)
      : ring_(ring), bounces_(bounces), registered_(registered), use_(use), file_(file), slots_(bounces.size()) {}

  void run(PieceQueue& pieces) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) begin_next(slot, pieces);
    while (under_way_ != 0) {
      wait_for_one();
      while (const std::optional<Ring::Completion> done = ring_.next()) {
        const auto slot = static_cast<std::size_t>(done->id);
        --under_way_;
        if (ended(slot, done->result)) begin_next(slot, pieces);
      }
    }
    if (!failed_) return;
    pieces.withdraw();
    std::rethrow_exception(failed_);
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

  void begin_next(std::size_t slot, PieceQueue& pieces) {
    const FilePart* piece = failed_ ? nullptr : pieces.take();
    if (piece == nullptr) return;
    try {
      slots_[slot].emplace(use_, file_, *piece, bounces_[slot], registered_);
    } catch (...) {
      failed_ = std::current_exception();
      return;
    }
    add(slot);
  }

  void add(std::size_t slot) {
    const BlockTransfer& rest = *slots_[slot];
    const int registered = registered_ ? static_cast<int>(slot) : -1;
    ring_.add({use_, file_.direct_descriptor(), rest.memory(), rest.offset(), slot, registered});
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
  bool registered_;
  FileUse use_;
  const StorageFile& file_;
  std::vector<std::optional<BlockTransfer>> slots_;
  std::size_t under_way_ = 0;
  bool ring_works_ = true;
  std::exception_ptr failed_;
};

class IoUring final : public FileRoad {
 public:
  IoUring(const RoadShape& shape, bool registers) : shape_(shape), registered_(registers), bounces_(shape.count) {}

  std::vector<FilePart> pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts) const override {
    return direct_pieces(use, file, parts, shape_.chunk);
  }
  void move(FileUse use, const StorageFile& file, PieceQueue& pieces) override {
    if (!ring_) begin(file);
    RingRun(*ring_, bounces_, registered_, use, file).run(pieces);
  }
  void finish(FileUse use, const StorageFile& file, std::span<const FilePart> parts) override {
    if (use == FileUse::write) write_rest(file, parts);
  }

 private:
  void begin(const StorageFile& file) {
    auto ring = std::make_unique<Ring>(shape_.count);
    try {
      if (registered_) register_bounces(*ring, file);
    } catch (const Error& error) {
      std::fprintf(stderr, "waywiser: %s: %s; without that from now on\n", file.path().c_str(), error.what());
      registered_ = false;
    }
    ring_ = std::move(ring);
  }

  // Each holds the largest piece, in whole blocks.
  void register_bounces(Ring& ring, const StorageFile& file) {
    for (Mapping& each : bounces_)
      each = Mapping::anonymous(shape_.chunk + 2 * file.block(), "memory for direct access to a file");
    ring.register_memory(bounces_);
  }

  RoadShape shape_;
  bool registered_;
  std::unique_ptr<Ring> ring_;
  std::vector<Mapping> bounces_;  // of each piece under way
};

std::unique_ptr<FileRoad> open_io_uring(const Way& way) {
  unsigned registered = 0;
  if (!way.read("registered", 1, registered)) refuse_input(text(way), "registered=1 or nothing");
  Way rest = way;
  rest.parameters.erase("registered");
  return std::make_unique<IoUring>(road_shape(rest, "depth", {Bytes{256} << 10, 32}), registered == 1);
}

std::optional<std::string> why_not_io_uring(const StorageFile& file, FileUse) {
  if (file.why_not_direct()) return file.why_not_direct();
  static const std::optional<std::string> why_no_ring = Ring::why_not();
  return why_no_ring;
}

}  // namespace

StorageMechanism io_uring_mechanism() {
  return {"io_uring", "One thread keeps several pieces under way past the page cache (io_uring, O_DIRECT).",
          why_not_io_uring, open_io_uring};
}

}  // namespace waywiser
