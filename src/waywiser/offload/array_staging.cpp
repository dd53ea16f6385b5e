#include "waywiser/offload/array_staging.hpp"

#include <algorithm>

namespace waywiser {

void ArrayStaging::make(std::size_t buffer, Bytes bytes, Allocation allocation) {
  Buffer& it = buffers_[buffer];
  if (!it.stream) it.stream = platform_->open_stream(gpu_);
  if (it.memory && it.memory.allocation() == allocation && it.memory.region().bytes >= bytes) return;
  it.memory = {};
  it.memory = platform_->allocate(platform_->nearest_host(gpu_.index), bytes, allocation);
}

void ArrayStaging::settle_all() {
  for (std::size_t buffer = 0; buffer < buffers_.size(); ++buffer)
    if (buffers_[buffer].stream) settle(buffer);
}

void ArrayStaging::prepare(DataRoad road, Bytes bytes) {
  const Bytes piece = std::min(bytes, piece_);
  if (road == DataRoad::direct || bytes == 0) return;
  if (road == DataRoad::pageable) return make(0, piece, Allocation::pageable);
  make(0, road == DataRoad::pinned ? bytes : piece, Allocation::pinned);
  if (road == DataRoad::pipelined && bytes > piece) make(1, piece, Allocation::pinned);
}

// A caller that learns of the failure may free the array at once.
void ArrayStaging::receive(DataRoad road, Region into, const ReceivePiece& receive) {
  prepare(road, into.bytes);
  try {
    receive_pieces(road, into, receive);
  } catch (...) {
    settle_all();
    throw;
  }
  settle_all();
}

void ArrayStaging::receive_pieces(DataRoad road, Region into, const ReceivePiece& receive) {
  std::size_t used = 0;
  for (Bytes at = 0; at < into.bytes; at += piece_) {
    const Region part = into.slice(at, std::min(piece_, into.bytes - at));
    if (road == DataRoad::direct) {
      receive(part);
    } else if (road == DataRoad::pinned) {
      receive(buffers_[0].memory.region().slice(at, part.bytes));
    } else {
      const std::size_t buffer = road == DataRoad::pipelined ? used++ % 2 : 0;
      settle(buffer);  // its last copy
      receive(room(buffer, part.bytes));
      buffers_[buffer].stream->copy(part, room(buffer, part.bytes));
    }
  }
  if (road == DataRoad::pinned && into.bytes != 0) buffers_[0].stream->copy(into, room(0, into.bytes));
}

void ArrayStaging::send(DataRoad road, ConstRegion from, const SendPiece& send) {
  prepare(road, from.bytes);
  try {
    send_pieces(road, from, send);
  } catch (...) {
    settle_all();
    throw;
  }
}

void ArrayStaging::send_pieces(DataRoad road, ConstRegion from, const SendPiece& send) {
  if (road == DataRoad::pinned && from.bytes != 0) {
    buffers_[0].stream->copy(room(0, from.bytes), from);
    settle(0);
  }
  const auto part_at = [&](Bytes at) { return from.slice(at, std::min(piece_, from.bytes - at)); };
  const auto copy_out = [&](std::size_t buffer, Bytes at) {
    buffers_[buffer].stream->copy(room(buffer, part_at(at).bytes), part_at(at));
  };
  if (road == DataRoad::pipelined && from.bytes != 0) copy_out(0, 0);
  std::size_t used = 0;
  for (Bytes at = 0; at < from.bytes; at += piece_) {
    const ConstRegion part = part_at(at);
    if (road == DataRoad::direct) {
      send(part);
    } else if (road == DataRoad::pinned) {
      send(buffers_[0].memory.region().slice(at, part.bytes));
    } else if (road == DataRoad::pageable) {
      copy_out(0, at);
      settle(0);
      send(room(0, part.bytes));
    } else {
      const std::size_t buffer = used++ % 2;
      if (at + piece_ < from.bytes) copy_out(1 - buffer, at + piece_);  // what it held has been sent
      settle(buffer);
      send(room(buffer, part.bytes));
    }
  }
}

}  // namespace waywiser
