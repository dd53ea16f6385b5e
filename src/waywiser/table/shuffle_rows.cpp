#include <algorithm>
#include <optional>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/table/block_hash.hpp"
#include "waywiser/table/gpu_pack.hpp"
#include "waywiser/table/pack_by_part.hpp"
#include "waywiser/table/refused_shuffle.hpp"
#include "waywiser/table/row_hash.hpp"
#include "waywiser/table/shuffle_work.hpp"

namespace waywiser {
namespace {

constexpr std::int64_t most_rows_at_once = 1 << 22;

}  // namespace

void ShuffleWork::insert(const Batch& batch, int part) {
  require_open(part);
  check_batch(schema_, batch.array());
  if (stream_) return add_rows_of_gpu(batch, part);
  add_rows(batch, part, RowSet(0, batch.rows()));
}

void ShuffleWork::insert(const Batch& batch, std::span<const int> keys) {
  if (keys.empty()) refuse_shuffle("no key is given");
  if (stream_) throw Error(ErrorKind::unavailable, "a shuffle of tables: rows on GPUs are not hashed: name their part");
  check_batch(schema_, batch.array());
  const RowHashes hashes(schema_, batch.array(), keys);
  if (std::ranges::any_of(given_, &Given::is_complete)) require_open(hashes, batch.rows());
  for (std::int64_t first = 0, count = 0; first < batch.rows(); first += count) {
    count = std::min({rows_at_once_ * parts() / 16 * 15 + 1,  // a piece for each part, as far as chance allows
                      most_rows_at_once, batch.rows() - first});
    by_part_.take(hashes, first, count);
    add_rows_by_part(batch);
  }
}

// All parts at once, but for those that are longer than a piece, and unless too much would be under way.
void ShuffleWork::add_rows_by_part(const Batch& batch) {
  std::vector<std::shared_ptr<std::byte>> blocks(static_cast<std::size_t>(parts()));
  std::optional<PackingByPart> packing;
  std::vector<std::uint64_t> hashes;
  if (PackingByPart::serves(schema_)) {
    packing.emplace(schema_, batch.array(), by_part_);
    take_blocks(*packing, blocks);
    std::vector<std::byte*> into;
    for (const auto& block : blocks) into.push_back(block.get());
    hashes = packing->write(into);
  }
  for (int i = 1; i <= parts(); ++i) {  // the ranks begin at different parts
    const int part = (group_.rank() + i) % parts();
    const std::int64_t rows = by_part_.count(part);
    if (std::shared_ptr<std::byte>& block = blocks[static_cast<std::size_t>(part)]) {
      const Bytes bytes = packing->bytes(part);
      note_length(bytes, rows, false);
      send_rows(part, rows, packing->nodes(part), bytes, hashes[static_cast<std::size_t>(part)], std::move(block));
    } else if (rows > 0) {
      add_rows(batch, part, by_part_.of(part));
    }
  }
}

void ShuffleWork::take_blocks(const PackingByPart& packing, std::span<std::shared_ptr<std::byte>> blocks) {
  const auto fits = [&](int part) {
    const std::int64_t rows = by_part_.count(part);
    return rows == 1 || (rows > 0 && packing.bytes(part) <= options_.piece);
  };
  Bytes out = 0;
  for (int part = 0; part < parts(); ++part)
    if (fits(part) && owner_of(part) != group_.rank()) out += packing.bytes(part);
  if (out > options_.budget / 2) return;
  exchange_.make_room(out);
  for (int part = 0; part < parts(); ++part)
    if (fits(part)) blocks[static_cast<std::size_t>(part)] = block_for(part, packing.bytes(part));
}

// In pieces, whose number of rows follows from the bytes of those before.
void ShuffleWork::add_rows(const Batch& batch, int part, const RowSet& rows) {
  for (std::int64_t first = 0; first < rows.size();) {
    const std::int64_t count = std::min(rows_at_once_, rows.size() - first);
    const Packing packing(schema_, batch.array(), rows.part(first, count));
    const bool is_too_long = packing.bytes() > options_.piece && count > 1;
    note_length(packing.bytes(), count, is_too_long);
    if (is_too_long) {
      rows_at_once_ = std::min(rows_at_once_, count / 2);
      continue;
    }
    if (owner_of(part) != group_.rank()) exchange_.make_room(packing.bytes());
    std::shared_ptr<std::byte> block = block_for(part, packing.bytes());
    BlockHash hash;
    packing.write(block.get(), &hash);
    send_rows(part, count, packing.nodes(), packing.bytes(), hash.value(), std::move(block));
    first += count;
  }
}

void ShuffleWork::note_length(Bytes bytes, std::int64_t rows, bool is_too_long) {
  if (!is_too_long && rows < rows_at_once_ / 4) return;  // padding makes a few rows longer
  const double of_row = std::max(1.0, static_cast<double>(bytes) / static_cast<double>(rows));
  const auto fitting = static_cast<std::int64_t>(static_cast<double>(options_.piece) / of_row);
  rows_at_once_ = std::clamp<std::int64_t>(fitting, 1, most_rows_at_once);
}

void ShuffleWork::add_rows_of_gpu(const Batch& batch, int part) {
  const Seconds timeout = group_.timeout();
  const auto packed = [&](std::int64_t first, std::int64_t count) {
    return GpuPacking(schema_, batch.array(), first, count, *stream_, timeout);
  };
  std::int64_t at_once = std::max<std::int64_t>(batch.rows(), 1);
  if (const Bytes all = packed(0, batch.rows()).bytes(); all > options_.piece && can_be_cut(schema_))
    at_once = std::max<std::int64_t>(8, at_once * static_cast<std::int64_t>(options_.piece) /
                                            static_cast<std::int64_t>(all) / 8 * 8);  // bits begin at bytes
  for (std::int64_t first = 0; first < batch.rows(); first += at_once) {
    const std::int64_t count = std::min(at_once, batch.rows() - first);
    const GpuPacking packing = packed(first, count);
    if (owner_of(part) != group_.rank()) exchange_.make_room(packing.bytes());
    std::shared_ptr<std::byte> block = block_for(part, packing.bytes());
    packing.write({block.get(), packing.bytes(), options_.place});
    stream_->synchronize(Deadline::in(timeout));
    send_rows(part, count, packing.nodes(), packing.bytes(), 0, std::move(block));
  }
}

std::shared_ptr<std::byte> ShuffleWork::block_for(int part, Bytes bytes) {
  return owner_of(part) == group_.rank() ? blocks_.of_part(static_cast<std::uint64_t>(part), bytes)
                                         : blocks_.to_send(bytes);
}

void ShuffleWork::send_rows(int part, std::int64_t rows, const std::vector<PackedNode>& nodes, Bytes bytes,
                            std::uint64_t hash, std::shared_ptr<std::byte> block) {
  const int to = owner_of(part);
  const bool is_own = to == group_.rank();  // nothing happens to it on the way
  const PieceHead head{PieceKind::rows, static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(rows), bytes,
                       is_own ? 0 : hash};
  given_[static_cast<std::size_t>(part)].sums.add(head.rows, head.hash);
  ShuffleCounts::Peer& peer = counts_.peers[static_cast<std::size_t>(to)];
  peer.rows_out += head.rows, peer.bytes_out += head.bytes, ++peer.pieces_out;
  if (is_own)
    arrive({to, head, nodes, std::move(block)});
  else
    exchange_.send(to, head, nodes, std::move(block));
}

void ShuffleWork::require_open(const RowHashes& hashes, std::int64_t rows) {
  for (std::int64_t first = 0, count = 0; first < rows; first += count) {
    count = std::min(most_rows_at_once, rows - first);
    by_part_.take(hashes, first, count);
    for (int part = 0; part < parts(); ++part)
      if (by_part_.count(part) > 0) require_open(part);
  }
}

}  // namespace waywiser
