#pragma once

#include <cstddef>
#include <span>

namespace waywiser {

// How the ranks of a group exchange the data for a set-up: all of them call it, in the same order.
class RankExchange {
 public:
  // `all` receives the bytes of every rank, in rank order; all ranks give equally many.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;

 protected:
  ~RankExchange() = default;
};

}  // namespace waywiser
