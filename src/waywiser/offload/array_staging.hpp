#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "waywiser/device/platform.hpp"
#include "waywiser/offload/data_road.hpp"

namespace waywiser {

// Moves the bytes of arrays between a GPU and something that takes them piece by piece, by any road. Memory that it
// needs is kept for the next array.
class ArrayStaging {
 public:
  // One piece that comes or goes: of the GPU's memory, or of the host's.
  using ReceivePiece = std::function<void(Region into)>;
  using SendPiece = std::function<void(ConstRegion data)>;

  // `patience`: for each copy.
  ArrayStaging(std::shared_ptr<Platform> platform, Place gpu, Bytes piece, Seconds patience)
      : platform_(std::move(platform)), gpu_(gpu), piece_(piece), patience_(patience) {}

  // All bytes are there when they return, and no copy is under way when they throw: what `receive` and `send` throw, or
  // device.
  void receive(DataRoad road, Region into, const ReceivePiece& receive);
  void send(DataRoad road, ConstRegion from, const SendPiece& send);

  // Throws device if there is too little memory for a road: before anything has come or gone.
  void prepare(DataRoad road, Bytes bytes);

 private:
  // A buffer of the host and the stream that copies from and into it.
  struct Buffer {
    Memory memory;
    std::unique_ptr<Stream> stream;
  };
  Region room(std::size_t buffer, Bytes bytes) const { return buffers_[buffer].memory.region().slice(0, bytes); }
  void settle(std::size_t buffer) { buffers_[buffer].stream->synchronize(Deadline::in(patience_)); }
  void settle_all();
  void make(std::size_t buffer, Bytes bytes, Allocation allocation);
  void receive_pieces(DataRoad road, Region into, const ReceivePiece& receive);
  void send_pieces(DataRoad road, ConstRegion from, const SendPiece& send);

  std::shared_ptr<Platform> platform_;
  const Place gpu_;
  const Bytes piece_;
  const Seconds patience_;
  std::array<Buffer, 2> buffers_;
};

}  // namespace waywiser
