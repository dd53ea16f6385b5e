#include "waywiser/collective/nccl/nccl_communicator.hpp"

#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/fused_works.hpp"

namespace waywiser {
namespace {

// ncclDataType_t and ncclRedOp_t. Types that NCCL lacks are copied as bytes.
std::optional<int> nccl_type(DataType type) {
  switch (type) {
    case DataType::int8: return 0;
    case DataType::uint8: return 1;
    case DataType::int32: return 2;
    case DataType::uint32: return 3;
    case DataType::int64: return 4;
    case DataType::uint64: return 5;
    case DataType::float16: return 6;
    case DataType::float32: return 7;
    case DataType::float64: return 8;
    case DataType::bfloat16: return 9;
    default: break;
  }
  return {};
}

int nccl_op(ReduceOp op) {
  constexpr int sum = 0, prod = 1, max = 2, min = 3, avg = 4;
  switch (op) {
    case ReduceOp::sum: return sum;
    case ReduceOp::prod: return prod;
    case ReduceOp::min: return min;
    case ReduceOp::max: return max;
    case ReduceOp::avg: return avg;
    default: return sum;
  }
}

bool reduces(const CollectiveCall& call) {
  return call.operation == Collective::all_reduce || call.operation == Collective::reduce ||
         call.operation == Collective::reduce_scatter;
}

// Translates `call` for NCCL, with bytes if nothing is reduced.
void call_nccl(const CollectiveCall& call, DataType type, ReduceOp op, const std::byte* input, std::byte* output,
               NcclComm comm, void* stream) {
  const NcclLibrary& nccl = nccl_library();
  const NcclFunctions& f = nccl.functions();
  constexpr int bytes = 1;
  const std::size_t block = call.count * bytes_of(type);
  switch (call.operation) {
    case Collective::all_reduce:
      return nccl.check(f.all_reduce(input, output, call.count, *nccl_type(type), nccl_op(op), comm, stream),
                        "ncclAllReduce");
    case Collective::reduce:
      return nccl.check(f.reduce(input, output, call.count, *nccl_type(type), nccl_op(op), call.root, comm, stream),
                        "ncclReduce");
    case Collective::reduce_scatter:
      return nccl.check(f.reduce_scatter(input, output, call.count, *nccl_type(type), nccl_op(op), comm, stream),
                        "ncclReduceScatter");
    case Collective::all_gather:
      return nccl.check(f.all_gather(input, output, block, bytes, comm, stream), "ncclAllGather");
    case Collective::broadcast:
      return nccl.check(f.broadcast(input, output, block, bytes, call.root, comm, stream), "ncclBroadcast");
    default: break;
  }
  nccl.check(f.group_start(), "ncclGroupStart");
  for (int peer = 0; peer < call.ranks; ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * block;
    nccl.check(f.send(input + at, block, bytes, peer, comm, stream), "ncclSend");
    nccl.check(f.receive(output + at, block, bytes, peer, comm, stream), "ncclRecv");
  }
  nccl.check(f.group_end(), "ncclGroupEnd");
}

}  // namespace

struct NcclCommunicator::Shared {
  std::shared_ptr<Stream> stream;  // makes its GPU current
  std::atomic<NcclComm> comm{nullptr};
  std::atomic<bool> ended{false};
  std::exception_ptr error;

  // Runs `function` with the GPU current, on a thread that may outlive its waiter.
  static void run(const std::shared_ptr<Shared>& self, std::function<void()> function, const Waiter& wait);
};

void NcclCommunicator::Shared::run(const std::shared_ptr<Shared>& self, std::function<void()> function,
                                   const Waiter& wait) {
  self->ended = false;
  self->error = nullptr;
  std::thread([self, work = std::move(function)] {
    try {
      Kernel kernel{1, 1, {}, [&work](void*) { work(); }};
      self->stream->launch(kernel);
    } catch (...) {
      self->error = std::current_exception();
    }
    self->ended.store(true, std::memory_order_release);
  }).detach();
  wait([&] { return self->ended.load(std::memory_order_acquire); });
  if (self->error) std::rethrow_exception(self->error);
}

NcclCommunicator::NcclCommunicator(const NcclUniqueId& id, int rank, int ranks, std::shared_ptr<Stream> stream,
                                   const Waiter& wait)
    : shared_(std::make_shared<Shared>()) {
  shared_->stream = std::move(stream);
  Shared::run(
      shared_,
      [shared = shared_.get(), id, rank, ranks] {
        NcclComm comm = nullptr;
        nccl_library().check(nccl_library().functions().comm_init_rank(&comm, ranks, id, rank), "ncclCommInitRank");
        shared->comm = comm;
      },
      wait);
}

// Does not wait for other ranks, which may be dead.
NcclCommunicator::~NcclCommunicator() { abort(); }

std::optional<std::string> NcclCommunicator::why_not(const CollectiveCall& call, DataType type) {
  if (!is_arithmetic(call.as.op)) return "NCCL has no " + std::string(name(call.as.op));
  if (auto why = fused::why_no_kernel(call)) return "NCCL is not asked for " + std::string(name(call.operation));
  if (reduces(call) && !nccl_type(type)) return "NCCL does not reduce " + std::string(name(type));
  return {};
}

void NcclCommunicator::enqueue(const CollectiveCall& call, DataType type, ReduceOp op, ConstRegion input, Region output,
                               Stream& stream, const Waiter& wait) {
  check();
  const NcclComm comm = shared_->comm;
  const auto work = [=](void* native) { call_nccl(call, type, op, input.data, output.data, comm, native); };
  if (warm(call.operation)) return stream.launch({1, 1, {}, work});
  Shared::run(shared_, [work, native = stream.native()] { work(native); }, wait);
  warm_ |= 1u << static_cast<unsigned>(call.operation);
}

void NcclCommunicator::check() const {
  const NcclComm comm = shared_->comm;
  if (comm == nullptr) throw Error(ErrorKind::device, "NCCL has been stopped");
  int problem = 0;
  nccl_library().check(nccl_library().functions().comm_get_async_error(comm, &problem), "ncclCommGetAsyncError");
  nccl_library().check(problem, "NCCL");
}

void NcclCommunicator::abandon() noexcept { shared_->comm = nullptr; }

void NcclCommunicator::abort() noexcept {
  const NcclComm comm = shared_->comm.exchange(nullptr);
  if (comm != nullptr) static_cast<void>(nccl_library().functions().comm_abort(comm));
}

}  // namespace waywiser
