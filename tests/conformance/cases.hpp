#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser::conformance {

// One path on one kind of machine. GPU 3 of the virtual machine has no peer access.
struct Case {
  std::string backend;  // host, virtual_gpu, cuda
  Path path;
  std::uint64_t reorder_seed = 0;
};

VirtualMachine four_gpus();
std::unique_ptr<Platform> open_platform(const Case& test);
std::vector<Case> all_cases();
std::string case_name(const testing::TestParamInfo<Case>& info);
inline void PrintTo(const Case& test, std::ostream* out) { *out << test.backend << ' ' << label(test.path); }

// The same mechanism the other way round.
Path reversed(const Path& path);

// Moves bytes between a test and any memory, whatever may touch it.
class Bytewise {
 public:
  explicit Bytewise(Platform& platform) : platform_(platform) {}
  void write(Region region, const std::vector<std::byte>& bytes);
  std::vector<std::byte> read(ConstRegion region);

 private:
  Stream& stream(Place place);
  Platform& platform_;
  std::map<Place, std::unique_ptr<Stream>> streams_;
};

// Position-dependent bytes that differ between seeds.
std::vector<std::byte> pattern(std::size_t bytes, unsigned seed);

}  // namespace waywiser::conformance
