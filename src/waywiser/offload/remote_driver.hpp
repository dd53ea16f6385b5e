#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/offload/remote_gpu.hpp"

namespace waywiser {

// What the CUDA driver says of a GPU.
struct GpuFacts {
  std::string name, uuid;  // uuid: hexadecimal digits
  Bytes bytes = 0;
  int version = 0;              // of the CUDA driver: 12040
  std::vector<int> attributes;  // from number 1
};

// A kernel on a remote GPU that is started with the bytes of its parameters.
struct RemoteKernel {
  std::uint64_t number = 0;
  std::vector<std::pair<Bytes, Bytes>> parameters;  // offset and bytes of each
  std::vector<int> attributes;                      // by their numbers in the CUDA driver API
};

// What a program of the CUDA driver API needs of a remote GPU besides the calls of RemoteGpu: addresses, parts of
// arrays, and kernels with any parameters. Calls that return nothing do not wait; all throw as those of RemoteGpu.
class [[gnu::visibility("default")]] RemoteDriver {
 public:
  explicit RemoteDriver(RemoteGpu& gpu) : gpu_(gpu) {}

  // Between these no other thread may call.
  void hold();
  void let_go() noexcept;

  // Of every call from now on.
  void set_timeout(Seconds timeout);
  GpuFacts facts();
  std::uint64_t address(std::uint64_t array);
  void copy(std::uint64_t to, Bytes to_offset, std::uint64_t from, Bytes from_offset, Bytes bytes);
  // As RemoteGpu::put, and the stream copies: the bytes may be changed again when a call has waited for the stream.
  // False: they do not lie in memory that the server has mapped, and nothing is begun.
  bool begin_put(std::uint64_t array, Bytes offset, ConstRegion bytes);
  // Units of 1, 2 or 4 bytes.
  void fill(std::uint64_t array, Bytes offset, Bytes bytes, std::uint32_t value, unsigned unit);
  void get(std::uint64_t array, Bytes offset, Region into);

  RemoteKernel kernel(std::uint64_t code, std::string_view name);
  // A variable of the code: its array, which free() ends, and its address and bytes.
  struct Variable {
    std::uint64_t array = 0, address = 0;
    Bytes bytes = 0;
  };
  Variable variable(std::uint64_t code, std::string_view name);
  void set_attribute(RemoteKernel& kernel, int attribute, int value);
  int occupancy(const RemoteKernel& kernel, int threads, Bytes shared);
  // `parameters`: as the kernel reads them, of at most most_parameter_bytes.
  void start(const RemoteKernel& kernel, const LaunchShape& shape, std::string_view parameters);

 private:
  std::string ask(std::string_view question, std::uint64_t number, std::initializer_list<std::uint64_t> arguments = {},
                  std::string_view name = {});
  RemoteGpu& gpu_;
};

}  // namespace waywiser
