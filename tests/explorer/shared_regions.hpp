#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace waywiser::explorer {

inline constexpr unsigned most_threads = 6;
using Clock = std::array<std::uint32_t, most_threads>;

enum class Access : std::uint8_t { read, write, atomic_read, atomic_write };
inline constexpr unsigned accesses = 4;

// Memory that threads of a run share, with vector clocks that order the accesses: an acquire joins the thread's clock
// with the released one. Two accesses race if neither happens before the other, at least one is a write, and at least
// one is not atomic.
class SharedRegions {
 public:
  // Accesses are tracked in pieces of `granule` bytes, each accessed as a whole. 0: the order of accesses is not
  // checked.
  void share(const char* name, const void* begin, std::size_t bytes, std::size_t granule);
  // The region belongs to its owner again. Returns an error, as for an access, if another thread may still access it;
  // every later access is an error.
  std::string give_back(unsigned thread, const void* begin);

  bool has(const void* address) const noexcept {
    const auto where = reinterpret_cast<std::uintptr_t>(address);
    return where >= begin_ && where < end_ && find(address) != nullptr;
  }
  // Notes an access; returns its error, or nothing.
  std::string note(unsigned thread, const void* address, std::size_t bytes, Access access);
  // The same for an atomic word.
  void acquire(unsigned thread, const void* address);
  // Notes a release. `continues`: earlier releases stay visible, as after a read-modify-write.
  void release(unsigned thread, const void* address, bool continues);
  // Notes a relaxed store: a later acquire of the word joins no clock.
  void forget_released(const void* address);

 private:
  struct Granule {
    std::array<std::array<std::uint32_t, most_threads>, accesses> last{};  // 0: never
  };
  struct Region {
    const char* name;
    std::uintptr_t begin, end;
    std::size_t granule;
    bool given_back = false;
    std::vector<Granule> granules = {};
  };
  struct Released {
    const void* address;
    Clock clock;
  };

  const Region* find(const void* address) const noexcept;
  std::string race(const Region& region, const Granule& granule, unsigned thread, Access access) const;
  Released& released(const void* address);

  std::vector<Region> regions_;
  std::uintptr_t begin_ = ~std::uintptr_t{0}, end_ = 0;  // of all of them
  std::vector<Released> released_;
  std::array<Clock, most_threads> clocks_ = first_clocks();
  static std::array<Clock, most_threads> first_clocks();
};

}  // namespace waywiser::explorer
