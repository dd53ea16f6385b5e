#pragma once

#include <cstdint>
#include <memory>

#include "waywiser/device/region.hpp"

namespace waywiser {

// Memory of each rank of a group that the others may read and write: see Group::expose. It must live, and must not be
// freed, until all ranks have done what they do with it: a barrier says when. Replays of graphs of collectives with
// outputs in it are among that.
class [[gnu::visibility("default")]] Window {
 public:
  struct State;
  explicit Window(std::unique_ptr<State> state);
  Window(Window&& other) noexcept;
  Window& operator=(Window&& other) noexcept;
  ~Window();

  Region local() const noexcept;
  // What a rank has exposed.
  Bytes bytes_of(int rank) const;

  // Returns when `data` may be used again: Group::flush says when it has arrived.
  void put(ConstRegion data, int to, Bytes offset) const;
  void get(Region data, int from, Bytes offset) const;
  // Writes the value after all earlier puts of this rank to that rank have arrived.
  void signal(int to, Bytes offset, std::uint64_t value) const;
  // Until this rank's own memory holds so much there.
  void wait(Bytes offset, std::uint64_t at_least) const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace waywiser
