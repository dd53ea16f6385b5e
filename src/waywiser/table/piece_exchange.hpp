#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "waywiser/group/group.hpp"
#include "waywiser/table/pack.hpp"
#include "waywiser/table/path_counts.hpp"
#include "waywiser/table/piece_blocks.hpp"

namespace waywiser {

enum class PieceKind : std::uint64_t { rows = 1, end_of_part, end };  // of what a rank gives

// Tells the receiver what comes behind it. For `end_of_part`: the sums over all pieces of that part.
struct PieceHead {
  PieceKind kind = PieceKind::rows;
  std::uint64_t part = 0, rows = 0, bytes = 0, hash = 0;
};

struct ArrivedPiece {
  int from = 0;
  PieceHead head;
  std::vector<PackedNode> nodes;
  std::shared_ptr<const std::byte> block;
};

// Blocks of memory between all ranks of a group, each behind a message with its length. Bytes under way, out and
// in, stay within a budget: a block out waits for room, and one that comes is asked for when there is room. A single
// block may exceed it.
class PieceExchange {
 public:
  using Arrival = std::function<void(ArrivedPiece&&)>;

  // `blocks` must outlive it. `nodes`: of each piece. `arrival` gets pieces in the order in which each rank sent them.
  PieceExchange(Group group, PieceBlocks& blocks, std::size_t nodes, Bytes budget, Arrival arrival);

  // From now on at most so many bytes go out at one time, if the budget has room for them.
  void limit_out(Bytes bytes) noexcept { most_out_ = std::min(bytes, budget_ / 2); }
  // Waits until so many bytes more may be under way.
  void make_room(Bytes bytes);
  // Begins to send; `block` has head.bytes, and none of its bytes changes any more. Not to this rank itself.
  void send(int to, const PieceHead& head, const std::vector<PackedNode>& nodes, std::shared_ptr<std::byte> block);
  // Gives all that is under way a turn; waits for nothing.
  void turn();
  // Waits until something has moved. Throws as Future::wait().
  void wait();
  // Nothing goes out any more, and every rank has sent its end.
  bool is_over() const noexcept { return outgoing_.empty() && open_ == 0; }

  Bytes most_under_way() const noexcept { return most_; }
  Seconds waited() const noexcept { return waited_; }
  // To and from each rank, of what has arrived.
  const std::vector<PathCounts>& paths() const noexcept { return paths_; }

 private:
  using Words = std::vector<std::uint64_t>;
  struct Busy {
    BusyTime out, in;
  };
  struct Outgoing {
    int to = 0;
    Bytes bytes = 0;
    Future head, body;
    bool is_over();
  };
  struct Incoming {
    int from = 0;
    Words words;
    std::shared_ptr<std::byte> block;
    Future head, body;
    enum class Awaits { head, room, body, nothing } awaits = Awaits::head;
  };

  void ask_for_head(Incoming& from);
  bool move_on(Incoming& from);  // whether it may be asked again at once
  void take_head(Incoming& from);
  void hand_over(Incoming& from);
  void note_sent(const Outgoing& piece);
  void note() noexcept;

  Elements bytes_at(const std::shared_ptr<std::byte>& block, Bytes bytes) const;

  Group group_;
  PieceBlocks& blocks_;
  std::size_t words_;
  Bytes budget_, most_out_, out_ = 0, in_ = 0, most_ = 0;
  Arrival arrival_;
  std::deque<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  int open_ = 0;
  Seconds waited_ = 0;
  std::vector<Busy> busy_;  // by rank, as the next
  std::vector<PathCounts> paths_;
};

}  // namespace waywiser
