#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "waywiser/sim/program.hpp"
#include "waywiser/sim/trace.hpp"

namespace waywiser::sim {

// Runs programs in a world, and keeps the queues of the units.
class Runner {
 public:
  explicit Runner(World& world, Trace* trace = nullptr);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // `transfers` of `bytes`, issued one after the other without waiting. Returns a number for ended().
  std::size_t add(const Program& program, Bytes bytes, int transfers);
  void run();
  // When the last transfer was complete and its finish over.
  Seconds ended(std::size_t number) const;

 private:
  class Stream;
  class Unit;
  struct Group {
    std::vector<std::size_t> members;  // streams of parts that run side by side
    Seconds finish = 0;
  };
  int unit(const std::string& name);

  World& world_;
  Trace* trace_;
  std::map<std::string, int> unit_numbers_;
  std::deque<Unit> units_;
  std::deque<Stream> streams_;
  std::vector<Group> groups_;
  std::size_t left_ = 0;  // streams that have not ended
};

}  // namespace waywiser::sim
