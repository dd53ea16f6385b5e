// Operations that have begun: by the group, or by the back end in Python.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core.hpp"

namespace waywiser::torch_backend {

// Complete: PyTorch would wait for an incomplete one without letting the group progress. On a GPU who waits for it
// waits for `stream`, else the current one.
inline c10::intrusive_ptr<c10::ivalue::Future> completed_future(const Tensors& result,
                                                                std::optional<c10::Stream> stream) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& each : result)
    if (each.is_cuda() && devices.empty()) devices.push_back(each.device());
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
  const c10::OptionalStreamGuard guard(stream);
  future->markCompleted(c10::IValue(result));
  return future;
}

// A future of the host, or what is enqueued in a stream of a GPU, with the event after it if that is not the caller's.
class GroupWork final : public c10d::Work {
 public:
  GroupWork(std::shared_ptr<const Core> core, c10d::OpType type, Tensors result, FutureHandle* future)
      : Work(-1, type), core_(std::move(core)), result_(std::move(result)), future_(future) {}
  GroupWork(std::shared_ptr<const Core> core, c10d::OpType type, Tensors result, c10::Event enqueued,
            c10::Stream stream)
      : Work(-1, type),
        core_(std::move(core)),
        result_(std::move(result)),
        enqueued_(std::move(enqueued)),
        stream_(stream) {}
  ~GroupWork() override {
    if (future_ == nullptr) return;
    const WithoutGil released;
    core_->drop(future_);
  }

  bool isCompleted() override {
    if (future_ != nullptr) {
      const WithoutGil released;
      const std::lock_guard lock(core_->lock());
      if (future_ != nullptr && !core_->done(future_)) return false;
      forget_future();
    }
    LeftTensors::let_go();
    return !enqueued_ || enqueued_->query();
  }
  bool isSuccess() const override { return const_cast<GroupWork*>(this)->isCompleted(); }

  // The group's own timeout applies.
  bool wait(std::chrono::milliseconds = kNoTimeout) override {
    if (future_ != nullptr) {
      const WithoutGil released;
      const std::lock_guard lock(core_->lock());
      if (future_ != nullptr) core_->wait(future_);
      forget_future();
    }
    LeftTensors::let_go();
    if (enqueued_) enqueued_->block(c10::impl::VirtualGuardImpl(stream_->device_type()).getStream(stream_->device()));
    return true;
  }
  void synchronize() override { wait(); }
  Tensors result() override { return result_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (!stream_) wait();
    return completed_future(result_, stream_);
  }

 private:
  void forget_future() {
    if (future_ != nullptr) core_->drop(std::exchange(future_, nullptr));
  }

  std::shared_ptr<const Core> core_;
  Tensors result_;
  FutureHandle* future_ = nullptr;
  std::optional<c10::Event> enqueued_;
  std::optional<c10::Stream> stream_;
};

// What a method of the back end in Python has returned.
class HandedWork final : public c10d::Work {
 public:
  explicit HandedWork(py::object work) : work_(std::move(work)) {}
  ~HandedWork() override {
    if (Py_IsInitialized() == 0) {
      work_.release();
      return;
    }
    const py::gil_scoped_acquire acquired;
    work_ = py::object();
  }

  bool isCompleted() override { return ask<bool>("is_completed"); }
  bool isSuccess() const override { return ask<bool>("is_success"); }
  bool wait(std::chrono::milliseconds = kNoTimeout) override { return ask<bool>("wait"); }
  void synchronize() override { wait(); }
  Tensors result() override { return ask<Tensors>("result"); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    std::optional<c10::Stream> stream;
    {
      const py::gil_scoped_acquire acquired;
      const py::object found = work_.attr("stream");
      if (!found.is_none()) stream = found.cast<c10::Stream>();
    }
    if (!stream) wait();
    return completed_future(result(), stream);
  }

 private:
  template <typename Answer>
  Answer ask(const char* method) const {
    const py::gil_scoped_acquire acquired;
    return work_.attr(method)().cast<Answer>();
  }

  py::object work_;
};

}  // namespace waywiser::torch_backend
