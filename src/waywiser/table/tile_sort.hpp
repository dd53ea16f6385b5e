#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace waywiser {

// Sorts up to 65,536 rows by the parts that their hashes belong to, those of a part in their order.
class TileSort {
 public:
  static constexpr std::size_t spare = 8;  // places behind the rows, which it may write

  explicit TileSort(int parts);
  // `rows`: as many as hashes, and spare ones; `ends`: of each part in them.
  void operator()(std::span<const std::uint64_t> hashes, std::uint16_t* rows, std::span<std::uint32_t> ends);

 private:
  void count_and_place(std::size_t count, std::uint16_t* rows, std::span<std::uint32_t> ends);

  int parts_;
  bool few_;  // so few that one pass for each is faster
  std::vector<std::uint8_t> small_parts_;
  std::vector<std::uint32_t> part_of_, places_;
};

}  // namespace waywiser
