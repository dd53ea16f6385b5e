#pragma once

#include <cstdint>
#include <memory>

#include "waywiser/device/region.hpp"

namespace waywiser {

// Memory of each rank of a group that the other ranks may read and write: see Group::expose. It must stay allocated
// until all ranks have finished their accesses: a barrier tells when. Replays of graphs whose collectives have outputs
// in the window are accesses too. One that was moved from can be assigned to and destroyed; its calls throw
// invalid_input.
class [[gnu::visibility("default")]] Window {
 public:
  struct State;
  explicit Window(std::unique_ptr<State> state);
  Window(Window&& other) noexcept;
  Window& operator=(Window&& other) noexcept;
  ~Window();

  Region local() const;
  // The bytes that a rank has exposed.
  Bytes bytes_of(int rank) const;

  // Returns when `data` may be reused; Group::flush returns when the bytes have arrived.
  void put(ConstRegion data, int to, Bytes offset) const;
  void get(Region data, int from, Bytes offset) const;
  // Writes the value after all earlier puts of this rank to rank `to` have arrived.
  void signal(int to, Bytes offset, std::uint64_t value) const;
  // Waits until the word at `offset` of this rank's own memory is at least `at_least`.
  void wait(Bytes offset, std::uint64_t at_least) const;

 private:
  State& held() const;  // throws if this was moved from

  std::unique_ptr<State> state_;
};

}  // namespace waywiser
