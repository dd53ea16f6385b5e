#pragma once

#include <cstddef>
#include <span>

namespace waywiser {

// How the ranks of a group tell each other what they need to set something up: called by all of them, in one order.
class RankExchange {
 public:
  // `all` takes what every rank gives, in the order of the ranks; all give as much.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;

 protected:
  ~RankExchange() = default;
};

}  // namespace waywiser
