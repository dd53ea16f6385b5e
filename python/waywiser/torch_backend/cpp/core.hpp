// The group behind the back end: its functions, and the lock that one thread at a time holds for them.
#pragma once

#include <Python.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "core_calls.hpp"

namespace waywiser::torch_backend {

namespace py = pybind11;
using Tensors = std::vector<at::Tensor>;

// While it lives, this thread is without the GIL.
class WithoutGil {
 public:
  WithoutGil() : state_(PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {}
  WithoutGil(const WithoutGil&) = delete;
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

// Python's calls of the group hold it too. Nobody waits for it with the GIL, so whoever holds it may wait for that.
class CallLock {
 public:
  void lock() {
    const WithoutGil released;
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};

// Tensors that operations of the group kept until they were over. Who lets go of a tensor may need the GIL, which a
// thread inside the group must not wait for.
class LeftTensors {
 public:
  static void leave(void* tensors) {
    const std::lock_guard lock(all().mutex_);
    all().left_.emplace_back(static_cast<Tensors*>(tensors));
  }
  static void let_go() {
    std::vector<std::unique_ptr<Tensors>> gone;
    const std::lock_guard lock(all().mutex_);
    gone.swap(all().left_);
  }

 private:
  static LeftTensors& all() {
    static auto* const found = new LeftTensors;  // PyTorch may end first
    return *found;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Tensors>> left_;
};

class Core {
 public:
  Core(const CoreCalls& calls, std::shared_ptr<CallLock> lock) : calls_(calls), lock_(std::move(lock)) {}

  CallLock& lock() const { return *lock_; }
  int type_of(const char* name) const { return calls_.type_of(name); }
  int operation_of(const char* name) const { return calls_.operation_of(name); }

  // The next four are called with the lock. They raise Python's errors.
  FutureHandle* call(const CallArguments& arguments) const {
    FutureHandle* future = nullptr;
    check(calls_.call(calls_.group, arguments, &future));
    return future;
  }
  bool is_capturing(const CallArguments& arguments) const {
    bool answer = false;
    check(calls_.is_capturing(calls_.group, arguments, &answer));
    return answer;
  }
  bool done(FutureHandle* future) const {
    bool answer = false;
    check(calls_.done(future, &answer));
    return answer;
  }
  void wait(FutureHandle* future) const { check(calls_.wait(future)); }

  void keep(FutureHandle* future, Tensors tensors) const {
    calls_.keep(future, new Tensors(std::move(tensors)), LeftTensors::leave);
  }
  void drop(FutureHandle* future) const { calls_.drop(future); }

 private:
  void check(bool succeeded) const {
    if (succeeded) return;
    const py::gil_scoped_acquire acquired;
    calls_.raise();
    throw py::error_already_set();
  }

  CoreCalls calls_;
  std::shared_ptr<CallLock> lock_;
};

}  // namespace waywiser::torch_backend
