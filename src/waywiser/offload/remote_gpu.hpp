#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/offload/array_head.hpp"
#include "waywiser/offload/launch.hpp"
#include "waywiser/offload/remote_times.hpp"

namespace waywiser {

class Group;
enum class DataRoad : std::uint8_t;  // waywiser/offload/data_road.hpp

// Memory of this program from and into which a server copies arrays itself, if it is on this machine; a server
// elsewhere gets its bytes from there without another copy. It goes with the last of its copies, and may outlive the
// GPU. One that was moved from has no memory.
class [[gnu::visibility("default")]] PinnedMemory {
 public:
  Region region() const noexcept;
  // "server": mapped by the server, and page-locked for its GPU; "lock": page-locked; empty: ordinary memory, since the
  // system lets this program lock no more (ulimit -l).
  std::string_view by() const noexcept;

 private:
  struct Block;
  friend class RemoteGpu;
  explicit PinnedMemory(std::shared_ptr<Block> block) : block_(std::move(block)) {}
  std::shared_ptr<Block> block_;
};

// A number that a function takes by name.
using RemoteNumber = std::pair<std::string, double>;

// A GPU of another process or machine. Arrays, streams and events there are named by numbers, which are never used
// twice.
//
// array, zeros, put, run, launch, record, wait and free do not wait for the server: the error of a request that fails
// comes out of the next call that has an answer (get, synchronize, await, since, times, align_clocks), with the name of
// the function or kernel, and the requests between them are not carried out, in no stream. Requests for which there is
// no room at the server go with the next call; flush() sends them. One thread at a time may use it: a call that meets
// one of another thread throws invalid_input, and close() waits for it. Every call throws io if the server has gone,
// and timeout; then all arrays are lost. One that
// was moved from can be assigned to, closed and destroyed; its other calls throw invalid_input.
class [[gnu::visibility("default")]] RemoteGpu {
 public:
  // `group`: of two ranks, in which this one is the client's. `name` begins the texts of all errors of the server.
  // `limit`: see limit(). `connection` is kept until close(). `admits_plain`: the server was started with --data-plain.
  RemoteGpu(Group group, std::string name, Bytes limit, std::shared_ptr<void> connection = {},
            bool admits_plain = false);
  RemoteGpu(RemoteGpu&& other) noexcept;
  RemoteGpu& operator=(RemoteGpu&& other) noexcept;
  ~RemoteGpu();

  const std::string& name() const;
  // The most bytes of all arrays together.
  Bytes limit() const;
  // "openssl" or "kernel"; empty within a machine, where nothing is encrypted.
  std::string encrypted_by() const;
  // The same of the bytes of arrays: empty also after use_plain_data().
  std::string data_encrypted_by() const;
  // From now on the bytes of arrays go to and from another machine unencrypted, by the fastest path of the network;
  // everything else stays encrypted. Does nothing where nothing is encrypted. Throws unavailable if the server was
  // started without --data-plain, and what synchronize() throws. `interrupted`: as RemoteGpuOptions has it.
  void use_plain_data(const std::function<bool()>& interrupted = {});

  // How the server moves the bytes of arrays from now on, in both directions. At first pipelined.
  void use_road(DataRoad road);

  // A new array of zeros, and one with the bytes of host memory, which may be changed again on return. Throws
  // invalid_input for an invalid head, or if the sizes differ; device if the array is above the limit.
  std::uint64_t zeros(const ArrayHead& head);
  std::uint64_t array(const ArrayHead& head, ConstRegion bytes);
  std::uint64_t array(ConstElements values);  // of one dimension
  // Bytes of an array, from `offset`.
  void put(std::uint64_t array, Bytes offset, ConstRegion bytes);
  // The whole array; returns its head. Throws invalid_input if it has another size or type.
  ArrayHead get(std::uint64_t array, Elements into);
  // `room` returns where an array with this head goes, in host memory.
  void get(std::uint64_t array, const std::function<Region(const ArrayHead& head)>& room);
  // Zeroed memory for arrays of this program: array, put and get use it as any other, and wait until the server has
  // copied its bytes, if it is on this machine. A server maps as many bytes for a client as its arrays may have, in at
  // most 1,000 memories. Waits as synchronize(). Throws device if there is too little memory.
  PinnedMemory pinned(Bytes bytes);
  // How memory is pinned that begins at this address: as PinnedMemory::by(), and empty for any other.
  std::string_view pinned_by(const void* address) const;
  // An array, a stream or an event.
  void free(std::uint64_t number);

  // A function of the server: of arrays, and of numbers by name. Returns the array of the result. Throws invalid_input
  // if the call is too long for a request.
  std::uint64_t run(std::string_view function, std::span<const std::uint64_t> arrays,
                    std::span<const RemoteNumber> numbers = {});

  // Kernels that run on arrays of this GPU: CUDA source, which the server compiles for it by NVRTC, PTX, a cubin or a
  // fatbin; they are extern "C" __global__. Waits until they are compiled, and returns the number of the code. Throws
  // invalid_input with the compiler's lines, or for more than 4 MiB; unavailable if the GPU is virtual, the server has
  // no NVRTC, or runs --builtins-only.
  std::uint64_t load_kernels(std::string_view code);
  // Runs a kernel of the code, as run() does not wait. Its arguments are checked there, by their number and types.
  void launch(std::uint64_t code, std::string_view kernel, const LaunchShape& shape,
              std::span<const KernelArgument> arguments);

  // Streams. Functions and kernels of one stream run one after the other, those of different streams at once, where
  // the GPU has room. What is called after use_stream() is in that stream: run, launch, record, wait; put and get wait
  // for that stream only, and so does synchronize(). Stream 0, at first the only one, is ordered with all others: its
  // calls wait for all earlier ones, and later calls of other streams for them; put, get and synchronize wait for all
  // streams. Functions of the server that are not built in wait for all streams too. A client has at most 64 streams
  // and 10,000 events, or the next answer is an error.
  std::uint64_t new_stream();
  void use_stream(std::uint64_t stream);
  // Events. record: the event happens when all earlier calls of the stream are over. wait: later calls of the stream
  // wait for it. await: this program waits for it. since: the seconds of the GPU's clock between two events, after
  // both. They throw as synchronize(), and invalid_input for an event that was not recorded.
  std::uint64_t new_event();
  void record(std::uint64_t event);
  void wait(std::uint64_t event);
  void await(std::uint64_t event);
  Seconds since(std::uint64_t later, std::uint64_t earlier);

  // A new array here, with the bytes of one of another GPU. They go from its server to this one, encrypted between
  // machines unless copies_plain(), and not through the client. Waits as synchronize() on both, and not for the bytes.
  // Throws as it does, and invalid_input for an array of this GPU. If the copy fails on its way, the next calls with an
  // answer throw, on both GPUs.
  std::uint64_t copy_of(RemoteGpu& other, std::uint64_t array);
  // Whether copies from another GPU go unencrypted between machines: both servers were started with --data-plain, and
  // use_plain_data() was called for both GPUs.
  bool copies_plain(const RemoteGpu& other) const;

  // Sends the requests that are still here.
  void flush();
  // Waits until all requests have been carried out: of the stream, and of all in stream 0.
  void synchronize();
  // The times of all requests so far, at seven points. Waits as synchronize().
  RemoteTimes times();
  // Asks for the server's clock so often, and keeps the answer that took the least time.
  ClockOffset align_clocks(int rounds = 32);

  // The server frees the arrays. Throws nothing if it has gone. No call is possible afterwards.
  void close() noexcept;

 private:
  struct State;
  friend class RemoteDriver;
  explicit RemoteGpu(std::unique_ptr<State> state) noexcept;
  State& held() const;  // throws if this was moved from

  std::unique_ptr<State> state_;
};

}  // namespace waywiser
