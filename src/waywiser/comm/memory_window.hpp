#pragma once

#include <memory>
#include <vector>

#include "waywiser/device/region.hpp"

namespace waywiser {

class Session;
struct Members;

// Memory of each rank of a group that the others may read and write: see Group::expose. It must live, and must not be
// freed, until all ranks have done what they do with it: a barrier says when. Replays of graphs of collectives with
// outputs in it are among that.
class MemoryWindow {
 public:
  MemoryWindow(MemoryWindow&& other) noexcept;
  MemoryWindow& operator=(MemoryWindow&& other) noexcept;
  ~MemoryWindow();

  Region local() const noexcept;
  // What a rank has exposed.
  Bytes bytes_of(int rank) const;

 private:
  friend class Group;
  struct Exposed;  // what is known of one rank's memory
  struct State;
  explicit MemoryWindow(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace waywiser
