// The back end: frequent calls of plain tensors go to the group at once, all others to the back end in Python.
#pragma once

#include <pybind11/stl.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tensors.hpp"
#include "works.hpp"

namespace waywiser::torch_backend {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using TensorLists = std::vector<Tensors>;

class GroupBackend final : public c10d::Backend {
 public:
  // `python`: an object of waywiser.torch_backend.compiled.Rest. `group` keeps the functions of `core`.
  GroupBackend(py::object python, py::capsule group, std::shared_ptr<const Core> core, int rank, int size)
      : Backend(rank, size),
        python_(std::move(python)),
        group_(std::move(group)),
        core_(std::move(core)),
        numbers_(*core_) {}
  ~GroupBackend() override {
    if (Py_IsInitialized() == 0) {
      python_.release();
      group_.release();
      return;
    }
    const py::gil_scoped_acquire acquired;
    python_ = py::object();
    group_ = py::capsule();
  }

  const std::string getBackendName() const override { return "waywiser"; }
  c10::intrusive_ptr<Options> getBackendOptions() override {
    const py::gil_scoped_acquire acquired;
    const auto milliseconds = static_cast<std::int64_t>(python_.attr("seconds")().cast<double>() * 1000);
    return c10::make_intrusive<Options>(getBackendName(), std::chrono::milliseconds(milliseconds));
  }
  void setTimeout(std::chrono::milliseconds timeout) override {
    const py::gil_scoped_acquire acquired;
    python_.attr("set_seconds")(static_cast<double>(timeout.count()) / 1000);
  }
  void shutdown() override {
    const py::gil_scoped_acquire acquired;
    python_.attr("shutdown")();
  }

  // Of collectives, so that TORCH_DISTRIBUTED_DEBUG=DETAIL can compare the ranks.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    if (!is_fast(tensors) || !reduces(opts, tensors[0])) return handed("allreduce", tensors, opts);
    return collective(CallName::all_reduce, c10d::OpType::ALLREDUCE, tensors[0], tensors[0], opts.asyncOp,
                      numbers_.of(opts.reduceOp));
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    if (!is_fast(tensors)) return handed("broadcast", tensors, opts);
    return collective(CallName::broadcast, c10d::OpType::BROADCAST, tensors[0], tensors[0], opts.asyncOp, 0,
                      static_cast<int>(opts.rootRank));
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& opts) override {
    if (!is_fast(input, output)) return handed("all_gather_single", output, input, opts);
    return collective(CallName::all_gather, c10d::OpType::_ALLGATHER_BASE, input, output, opts.asyncOp);
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& opts) override {
    if (!is_fast(input, output) || !reduces(opts, input)) return handed("reduce_scatter_single", output, input, opts);
    return collective(CallName::reduce_scatter, c10d::OpType::_REDUCE_SCATTER_BASE, input, output, opts.asyncOp,
                      numbers_.of(opts.reduceOp));
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& take,
                            std::vector<std::int64_t>& give, const c10d::AllToAllOptions& opts) override {
    if (!take.empty() || !give.empty() || !is_fast(input, output))
      return handed("all_to_all_single", output, input, take, give, opts);
    return collective(CallName::all_to_all, c10d::OpType::ALLTOALL_BASE, input, output, opts.asyncOp);
  }
  WorkPointer send(Tensors& tensors, int to, int tag) override {
    if (!is_fast(tensors)) return passed_on("send", tensors, to, tag);
    CallArguments arguments = message(CallName::send, tensors[0], to, tag);
    set_input(arguments, tensors[0]);
    return begun(arguments, c10d::OpType::SEND, {}, {tensors[0]});
  }
  WorkPointer recv(Tensors& tensors, int from, int tag) override {
    if (!is_fast(tensors)) return passed_on("recv", tensors, from, tag);
    CallArguments arguments = message(CallName::recv, tensors[0], from, tag);
    set_output(arguments, tensors[0]);
    return begun(arguments, c10d::OpType::RECV, {tensors[0]}, {tensors[0]});
  }

  WorkPointer barrier(const c10d::BarrierOptions& opts) override { return handed("barrier", opts); }
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override {
    return handed("allreduce_coalesced", tensors, static_cast<const c10d::AllreduceOptions&>(opts));
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override {
    return handed("reduce", tensors, opts);
  }
  WorkPointer allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override {
    return handed("allgather", outputs, inputs, opts);
  }
  WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override {
    return handed("allgather_coalesced", outputs, inputs, opts);
  }
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& opts) override {
    return handed("all_gather_single_coalesced", outputs, inputs, opts);
  }
  WorkPointer gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override {
    return handed("gather", outputs, inputs, opts);
  }
  WorkPointer scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& opts) override {
    return handed("scatter", outputs, inputs, opts);
  }
  WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& opts) override {
    return handed("reduce_scatter", outputs, inputs, opts);
  }
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& opts) override {
    return handed("reduce_scatter_single_coalesced", outputs, inputs, opts);
  }
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override {
    return handed("alltoall", outputs, inputs, opts);
  }
  WorkPointer recvAnysource(Tensors& tensors, int tag) override { return passed_on("recv_anysource", tensors, tag); }
  void startCoalescing() override {
    together_ = true;
    const py::gil_scoped_acquire acquired;
    python_.attr("start_coalescing")();
  }
  WorkPointer endCoalescing() override {
    together_ = false;
    return passed_on("end_coalescing");
  }

 private:
  // The stream of asynchronous operations, which is Python's too, and the event before one.
  struct AsyncLine {
    c10::Stream stream;
    c10::Event before;
  };

  bool is_fast(const Tensors& tensors) const {
    return !together_ && tensors.size() == 1 && is_plain(tensors[0], numbers_);
  }
  bool is_fast(const at::Tensor& input, const at::Tensor& output) const {
    return !together_ && are_plain(input, output, numbers_);
  }
  template <typename Options>
  bool reduces(const Options& opts, const at::Tensor& tensor) const {
    return tensor.scalar_type() != at::kBool && numbers_.of(opts.reduceOp) >= 0;
  }

  template <typename... Arguments>
  WorkPointer handed(const char* collective, const Arguments&... arguments) {
    ++sequence_;
    return passed_on(collective, arguments...);
  }
  template <typename... Arguments>
  WorkPointer passed_on(const char* method, const Arguments&... arguments) const {
    const py::gil_scoped_acquire acquired;
    return c10::make_intrusive<HandedWork>(python_.attr(method)(arguments...));
  }

  CallArguments message(CallName name, const at::Tensor& tensor, int rank, int tag) const {
    CallArguments arguments;
    arguments.name = name;
    arguments.type = numbers_.of(tensor.scalar_type());
    arguments.rank = rank;
    arguments.tag = tag;
    return arguments;
  }

  WorkPointer collective(CallName name, c10d::OpType type, const at::Tensor& input, const at::Tensor& output,
                         bool asynchronous, int operation = 0, int root = 0) {
    ++sequence_;
    CallArguments arguments = message(name, input, root, 0);
    arguments.operation = operation;
    set_input(arguments, input);
    set_output(arguments, output);
    return begun(arguments, type, {output}, {input, output}, asynchronous);
  }

  // `asynchronous`: on a GPU, in a stream of its own unless a graph is being captured.
  WorkPointer begun(CallArguments& arguments, c10d::OpType type, Tensors result, Tensors used,
                    bool asynchronous = false) {
    LeftTensors::let_go();
    const c10::Device device = used[0].device();
    const WithoutGil released;
    const std::lock_guard lock(core_->lock());
    if (device.is_cuda()) {
      const c10::Stream current = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
      arguments.gpu = device.index();
      arguments.stream = reinterpret_cast<std::uint64_t>(current.native_handle());
      if (asynchronous && !core_->is_capturing(arguments))
        return apart(arguments, type, std::move(result), used, current);
    }
    FutureHandle* future = core_->call(arguments);
    if (future != nullptr) core_->keep(future, std::move(used));
    return c10::make_intrusive<GroupWork>(core_, type, std::move(result), future);
  }

  // After all that the current stream has now.
  WorkPointer apart(CallArguments& arguments, c10d::OpType type, Tensors result, const Tensors& used,
                    const c10::Stream& current) {
    AsyncLine& line = line_of(current.device());
    line.before.record(current);
    line.before.block(line.stream);
    arguments.stream = reinterpret_cast<std::uint64_t>(line.stream.native_handle());
    core_->call(arguments);
    const c10::impl::VirtualGuardImpl device(current.device_type());
    for (const at::Tensor& each : used)  // their memory is not used again before this operation has ended
      device.recordDataPtrOnStream(each.storage().data_ptr(), line.stream);
    c10::Event ended(current.device_type());
    ended.record(line.stream);
    return c10::make_intrusive<GroupWork>(core_, type, std::move(result), std::move(ended), line.stream);
  }

  AsyncLine& line_of(const c10::Device& device) {
    const auto known = lines_.find(device.index());
    if (known != lines_.end()) return known->second;
    const py::gil_scoped_acquire acquired;
    const auto stream = python_.attr("async_stream")(device).attr("stream").cast<c10::Stream>();
    return lines_.emplace(device.index(), AsyncLine{stream, c10::Event(device.type())}).first->second;
  }

  py::object python_;
  py::capsule group_;
  std::shared_ptr<const Core> core_;
  Numbers numbers_;
  std::map<c10::DeviceIndex, AsyncLine> lines_;
  std::atomic<std::uint64_t> sequence_ = 0;
  std::atomic<bool> together_ = false;  // since startCoalescing
};

}  // namespace waywiser::torch_backend
