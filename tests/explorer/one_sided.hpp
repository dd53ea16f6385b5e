#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser::explorer {

// One-sided accesses of ranks to each other's memory, in place of UCX. A put is read and arrives when the schedule says
// so, whatever the order in which puts began; its request is complete once it has been read.
class OneSided {
 public:
  explicit OneSided(Course& course) : course_(course) {}
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;

  // Of rank `from`: its put, its get, a wait for all its puts.
  void* put(std::uint32_t from, std::uint64_t address, ConstRegion data);
  void* get(std::uint32_t from, std::uint64_t address, Region data);
  void* flush(std::uint32_t from);
  bool is_over(void*& request);
  // A helper thread: carries accesses out, for ever.
  void carry();
  bool is_empty() const noexcept { return accesses_.empty(); }

 private:
  enum class Kind { put, get, flush };
  enum class Stage { begun, read, over };
  struct Access {
    Kind kind = Kind::put;
    std::uint32_t from = 0;
    std::byte *mine = nullptr, *theirs = nullptr;
    std::vector<std::byte> bytes;
    Stage stage = Stage::begun;
    bool freed = false;
    std::vector<const Access*> earlier = {};  // a flush waits for them
  };

  Access& begin(Access access);
  void advance(Access& access);
  bool is_complete(const Access& access) const;
  void forget();

  Course& course_;
  std::list<Access> accesses_;
};

}  // namespace waywiser::explorer
