#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/transport/ucx/ucx_functions.hpp"

namespace waywiser::explorer {

// One-sided accesses of ranks to each other's memory, in place of UCX. A put is read and arrives when the schedule says
// so, whatever the order in which puts began; its request is complete once it has been read.
class OneSided {
 public:
  OneSided(Course& course, std::uint32_t ranks);
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;
  ~OneSided();

  ucp_ep_h endpoint(std::uint32_t rank, std::uint32_t peer);
  ucp_worker_h worker(std::uint32_t rank);
  // A helper thread: carries accesses out, for ever.
  void carry();
  bool is_empty() const noexcept { return accesses_.empty(); }

 private:
  friend UcxFunctions functions_of_one_sided();
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
  const std::uint32_t ranks_;
  std::list<Access> accesses_;
};

// They serve the OneSided that was made last.
UcxFunctions functions_of_one_sided();

}  // namespace waywiser::explorer
