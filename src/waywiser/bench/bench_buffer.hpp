#pragma once

#include <memory>

#include "waywiser/comm/elements.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// Memory of a timed operation, on the host or on a GPU, that can be filled and checked.
class BenchBuffer {
 public:
  BenchBuffer(Platform& platform, Place place, Bytes bytes, Allocation on_host = Allocation::pageable);

  const Memory& memory() const { return memory_; }
  Elements bytes(Bytes offset, Bytes length) const { return {region(offset, length), DataType::uint8}; }
  Elements bytes() const { return bytes(0, size_); }
  // The first `length` bytes as float32.
  Elements numbers(Bytes length) const { return {region(0, length), DataType::float32}; }

  void fill(Bytes offset, Bytes length, std::uint64_t seed);
  // Throws corrupt, naming `what`.
  void check(Bytes offset, Bytes length, std::uint64_t seed, const std::string& what);
  // Small whole numbers: sums of them are exact in any order. `first` shifts them.
  void fill_numbers(Bytes length, std::uint64_t first);
  // Checks for the sums of the numbers of `ranks` ranks, where rank r was filled with first + r; element 0 is their
  // number `offset`.
  void check_sums(Bytes length, std::uint64_t first, int ranks, std::size_t offset, const std::string& what);

 private:
  Region region(Bytes offset, Bytes length) const { return memory_.region().slice(offset, length); }
  // Host memory with the first `length` bytes; the buffer's own memory if it is on the host.
  std::byte* on_host(Bytes length);
  void synchronize();

  Platform& platform_;
  Bytes size_;
  Memory memory_, copy_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace waywiser
