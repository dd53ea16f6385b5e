#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/offload/array_staging.hpp"
#include "waywiser/offload/client_kernels.hpp"
#include "waywiser/offload/client_memory.hpp"
#include "waywiser/offload/functions.hpp"
#include "waywiser/offload/gpu_work.hpp"
#include "waywiser/offload/reply.hpp"
#include "waywiser/offload/request.hpp"
#include "waywiser/offload/worker_line.hpp"

namespace waywiser {

// The bytes of arrays, texts and the replies, to and from the client of a worker. Everything throws what a group
// throws.
class WorkerChannel {
 public:
  virtual ~WorkerChannel() = default;
  // Of arrays.
  virtual void receive(Region into) = 0;
  virtual void send(ConstRegion data) = 0;
  // The code of kernels, and the lines of a compiler: encrypted wherever requests are.
  virtual void receive_text(Region into) = 0;
  virtual void send_text(ConstRegion data) = 0;
  virtual void reply(const ReplyFrame& frame) = 0;
  // Calls `announce(address)`, then waits there for the client, which comes with the secret. Arrays go that way from
  // then on, unencrypted. Throws unavailable where that is not admitted.
  virtual void open_plain(const std::string& secret,
                          const std::function<void(const std::string& address)>& announce) = 0;
  // A file of memory that the client has opened as `number`. Throws unavailable if it is on another machine, device.
  virtual Descriptor open_file_of_client(std::uint64_t number) = 0;
};

// Arrays travel in pieces of this size.
inline constexpr Bytes piece_of_array = Bytes{8} << 20;

std::string array_text(std::uint64_t number);  // for errors

// What a server lets one client do. 0: as much as it likes.
struct ClientLimits {
  std::uint64_t requests = 0;
  Seconds seconds = 0;  // since it has come
};

// Carries out the requests of one client, in their order, on one GPU. The next reply reports a request that failed,
// as CUDA reports errors of earlier kernels; the worker skips the requests in between.
class RemoteWorker {
 public:
  struct Setup {
    std::shared_ptr<Platform> platform;
    Place gpu;
    Bytes limit = 0;  // of the client's arrays together
    ServerFunctions functions;
    Seconds patience = 60;       // for the GPU
    bool builtins_only = false;  // nothing else, as the site wants it: --builtins-only
    std::function<std::unique_ptr<KernelMaker>(const Platform&, Place gpu)> kernels = open_kernel_maker;
    std::shared_ptr<WorkerLines> lines = {};  // nullptr: none
    ClientLimits limits = {};
  };
  RemoteWorker(WorkerChannel& channel, Setup setup);

  // False: the client has ended. Throws invalid_input for bytes that are no frame, and what the channel throws; then
  // the stream of requests cannot be followed any further.
  bool serve(std::span<const std::byte> frame);
  // No other frame is there: what comes later is timed by itself.
  void pause();
  Bytes used() const noexcept { return used_; }
  std::uint64_t requests() const noexcept { return requests_; }

 private:
  void carry_out(const requests::Synchronize& request);
  void carry_out(const requests::End&) {}  // nothing is carried out any more
  void carry_out(const requests::Zeros& zeros);
  void carry_out(const requests::NewArray& made);
  void carry_out(const requests::Put& put);
  void carry_out(const requests::Get& get);
  void carry_out(const requests::Free& free);
  void carry_out(const requests::Run& run);
  void carry_out(const requests::LoadCode& load);
  void carry_out(const requests::LaunchKernel& launch);
  void carry_out(const requests::Give& give);
  void carry_out(const requests::Take& take);
  void carry_out(const requests::UseRoad& use) { road_ = use.road; }
  void carry_out(const requests::OpenPlain& open);
  void carry_out(const requests::UseStream& use);
  void carry_out(const requests::Record& record);
  void carry_out(const requests::Wait& wait);
  void carry_out(const requests::Await& await);
  void carry_out(const requests::Since& since);
  void carry_out(const requests::Pin& pin);
  void carry_out(const requests::ArrayFrom& made);
  void carry_out(const requests::PutFrom& put);
  void carry_out(const requests::BeginPut& put);
  void carry_out(const requests::GetInto& get);
  void carry_out(const requests::CopyBytes& copy);
  void carry_out(const requests::Fill& fill);
  void carry_out(const requests::GetPart& get);
  void carry_out(const requests::StartKernel& start);
  void carry_out(const requests::Ask& ask);
  std::string answer_to(const requests::Ask& ask, const std::string& name);
  Bytes taken();  // of all arrays, and of freed ones that work under way may use
  bool forget_memory(std::uint64_t number);
  void check_limits();
  WorkerLines& lines() const;
  ClientKernels& kernels();
  HeldArray result_of(const requests::Run& run);
  HeldArray on_gpu(HeldArray result);
  void copy_now(Region to, ConstRegion from);
  HeldArray allocate(ArrayHead head);
  // Receives all of the pieces; those of an array that could not be made are thrown away.
  void receive(std::optional<Region> into, Bytes bytes);
  void throw_away(Bytes bytes);
  void reply(RemoteReply told = {});
  // Attempts `work`, which says what the reply tells, and replies.
  void answer(const std::string& what, const std::function<void(RemoteReply& told)>& work);
  void add(std::uint64_t number, HeldArray array);
  void check_new(std::uint64_t number) const;
  const HeldArray& find(std::uint64_t number) const;
  Region find(const requests::PartOfArray& part) const;
  Region find(const requests::PinnedPlace& place, Bytes bytes) const;
  // Runs `work` unless an earlier request has failed; notes its error. False: it has failed.
  bool attempt(const std::string& what, const std::function<void()>& work);

  WorkerChannel& channel_;
  Setup setup_;
  std::unique_ptr<Stream> aside_;  // for copies that are waited for
  // These outlive the work that uses them.
  std::map<std::uint64_t, HeldArray> arrays_;
  ClientMemory client_memory_;
  std::optional<ClientKernels> kernels_;          // opened when it is needed
  std::vector<KernelArgument> kernel_arguments_;  // of one call
  GpuWork work_;
  Bytes used_ = 0, leaving_ = 0;  // leaving: of freed arrays that work under way may use
  std::uint64_t requests_ = 0;
  const Seconds since_ = now_seconds();
  std::optional<RemoteFailure> failure_;
  RemoteInterval input_, output_;
  DataRoad road_ = first_data_road;
  ArrayStaging staging_;
};

}  // namespace waywiser
