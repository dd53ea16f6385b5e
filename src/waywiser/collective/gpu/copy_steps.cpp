#include "waywiser/collective/gpu/copy_steps.hpp"

#include <algorithm>

#include "waywiser/comm/data_type.hpp"

namespace waywiser {
namespace {

// How a call is divided: into one block for each rank, of equal size, or of the whole array.
struct CopiedBlocks {
  explicit CopiedBlocks(const CollectiveCall& call)
      : bytes(call.count * bytes_of(call.as.type)), ranks(static_cast<Bytes>(call.ranks)) {
    if (call.operation == Collective::all_reduce)
      whole = bytes, bytes = CopyPipeline::aligned((bytes + ranks - 1) / ranks);
    if (call.operation == Collective::broadcast && ranks > 1)  // the root keeps nothing for itself
      whole = bytes, bytes = CopyPipeline::aligned((bytes + ranks - 2) / (ranks - 1));
  }
  // Of a piece of block `index`.
  Bytes length(int index, Bytes at, Bytes piece) const {
    Bytes end = bytes;
    if (whole != 0) {
      const Bytes before = static_cast<Bytes>(index) * bytes;
      end = std::min(bytes, whole > before ? whole - before : 0);
    }
    return at < end ? std::min(piece, end - at) : 0;
  }

  Bytes bytes, ranks, whole = 0;
};

class CopyStepMaker {
 public:
  CopyStepMaker(const CollectiveCall& call, Bytes piece) : call_(call), blocks_(call), piece_(piece) {}

  std::vector<CopyStep> run() {
    const bool twice =
        call_.operation == Collective::all_reduce || (call_.operation == Collective::broadcast && call_.ranks > 2);
    // What one step has gathered is sent on two steps later: the copies of the step between hide that.
    std::vector<int> gathered;
    for (Bytes at = 0; at < blocks_.bytes; at += piece_) {
      gathered.push_back(static_cast<int>(steps_.size()));
      steps_.push_back(first(at));
      if (twice && gathered.size() > 1) send_on(gathered[gathered.size() - 2], at - piece_);
    }
    if (twice) send_on(gathered.back(), static_cast<Bytes>(gathered.size() - 1) * piece_);
    return std::move(steps_);
  }

 private:
  Bytes offset(int block, Bytes at) const { return static_cast<Bytes>(block) * blocks_.bytes + at; }
  Bytes length(int block, Bytes at) const { return blocks_.length(block, at, piece_); }
  // Each rank begins with the next one.
  template <typename Function>
  void each_other(Function f) const {
    for (int distance = 1; distance < call_.ranks; ++distance) f((call_.rank + distance) % call_.ranks);
  }
  int shared(int rank) const { return rank - (rank > call_.root ? 1 : 0); }  // the block of a rank that is not the root
  static void push(CopyStep& step, int to, bool of_output, Bytes from, Bytes bytes) {
    if (bytes != 0) step.pushes.push_back({to, of_output, from, bytes});
  }
  static void take(CopyStep& step, int from, Bytes to, Bytes bytes) {
    if (bytes != 0) step.takes.push_back({from, to, bytes});
  }

  CopyStep first(Bytes at) const {
    CopyStep step;
    const int me = call_.rank;
    switch (call_.operation) {
      case Collective::all_gather:
        each_other([&](int peer) {
          push(step, peer, false, at, length(peer, at));
          take(step, peer, offset(peer, at), length(peer, at));
        });
        break;
      case Collective::all_to_all:
        each_other([&](int peer) {
          push(step, peer, false, offset(peer, at), length(peer, at));
          take(step, peer, offset(peer, at), length(peer, at));
        });
        break;
      case Collective::broadcast:
        if (me == call_.root)
          each_other([&](int peer) { push(step, peer, false, offset(shared(peer), at), length(shared(peer), at)); });
        else
          take(step, call_.root, offset(shared(me), at), length(shared(me), at));
        break;
      default:
        each_other([&](int peer) { push(step, peer, false, offset(peer, at), length(peer, at)); });
        step.own = offset(me, at);
        step.sum = call_.operation == Collective::reduce_scatter ? at : offset(me, at);
        step.summed = length(me, at);
    }
    return step;
  }

  void send_on(int after, Bytes at) {
    CopyStep step;
    step.after = after;
    const int me = call_.rank;
    if (call_.operation == Collective::all_reduce)
      each_other([&](int peer) {
        push(step, peer, true, offset(me, at), length(me, at));
        take(step, peer, offset(peer, at), length(peer, at));
      });
    else if (me != call_.root)
      each_other([&](int peer) {
        if (peer == call_.root) return;
        push(step, peer, true, offset(shared(me), at), length(shared(me), at));
        take(step, peer, offset(shared(peer), at), length(shared(peer), at));
      });
    steps_.push_back(std::move(step));
  }

  const CollectiveCall& call_;
  const CopiedBlocks blocks_;
  const Bytes piece_;
  std::vector<CopyStep> steps_;
};

}  // namespace

std::string why_no_copies(const CollectiveCall& call) {
  switch (call.operation) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      if (!is_arithmetic(call.as.op)) return "there is no kernel for " + std::string(name(call.as.op));
      break;
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::broadcast: break;
    default: return "copy engines do no " + std::string(name(call.operation));
  }
  return call.counts.empty() ? "" : "copy engines take blocks of one size";
}

Bytes copied_piece(const CollectiveCall& call, const CopyLanding& landing, Bytes pieces) {
  const CopiedBlocks blocks(call);
  return CopyPipeline::piece(blocks.bytes, pieces, landing.area);
}

std::vector<CopyStep> copy_steps(const CollectiveCall& call, const CopyLanding& landing, Bytes pieces) {
  return CopyStepMaker(call, copied_piece(call, landing, pieces)).run();
}

}  // namespace waywiser
