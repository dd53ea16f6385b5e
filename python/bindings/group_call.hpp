#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <string>

#include "bindings/array.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

// The elements of an array that is given to a call.
ConstElements input(const Group& group, nanobind::handle array, bool* of_bools = nullptr);
Elements output(const Group& group, nanobind::handle array);
// The bytes of an array with elements of any type.
ConstRegion input_bytes(const Group& group, nanobind::handle array);
Region output_bytes(const Group& group, nanobind::handle array);

// The stream in which a call's arrays are used: None, a GpuStream, or the number of another library's stream on the GPU
// that has the array. None for arrays of the host.
class StreamUse {
 public:
  StreamUse(const Group& group, nanobind::handle stream, Place place)
      : StreamUse([&group] { return group.platform(); }, stream, place) {}
  StreamUse(const PlatformSource& platform, nanobind::handle stream, Place place);

  Stream* stream() const noexcept { return stream_; }
  // For calls that are complete when they return: what was enqueued comes first.
  void settle(Group& group) const {
    if (stream_ != nullptr) group.synchronize(*stream_);
  }
  // The same without a group. Throws timeout.
  void settle() const {
    if (stream_ != nullptr) stream_->synchronize(Deadline::in(usual_timeout()));
  }

 private:
  std::unique_ptr<Stream> borrowed_;
  Stream* stream_ = nullptr;
};

// The arrays of a call. `stream` is that of the GPU array.
struct ArrayPair {
  bool of_bools = false;
  ConstElements give;
  Elements take;
  StreamUse use;

  ArrayPair(const Group& group, nanobind::handle data, nanobind::handle out, nanobind::handle stream)
      : give(data.is_none() ? ConstElements({}, output(group, out).type) : input(group, data, &of_bools)),
        take(out.is_none() ? Elements({}, give.type) : output(group, out)),
        use(group, stream, give.region.place.is_gpu() ? give.region.place : take.region.place) {}

  // The sum of bools is whether any is true, the product whether all are: the results are bools again.
  ReduceOp reduction(const std::string& name) const {
    const ReduceOp op = parse_reduce_op(name);
    if (!of_bools || op == ReduceOp::min || op == ReduceOp::max || !is_arithmetic(op)) return op;
    if (op == ReduceOp::avg) throw Error(ErrorKind::invalid_input, "there is no average of bools");
    return op == ReduceOp::sum ? ReduceOp::max : ReduceOp::min;
  }

  // Enqueued where there is a stream, else complete.
  Mode mode() const { return use.stream() != nullptr ? Mode::on(*use.stream()) : Mode::wait; }
};

// The arrays are looked at with the GIL, the rest is done without it. An interruption is raised as what it is.
template <typename Function>
void without_gil(Function function) {
  try {
    const nanobind::gil_scoped_release released;
    function();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted && PyErr_Occurred() != nullptr) throw nanobind::python_error();
    throw;
  }
}

// Sets Python's error to what C++ has thrown, as the functions of the module do. The caller holds the GIL.
void raise_in_python(const std::exception_ptr& thrown);

// Other ranks may use arrays of this one until its process is gone, which is after the interpreter has ended.
bool interpreter_ends();
template <typename Keeper>
void outlive_interpreter(Keeper keeper) {
  static_cast<void>(new Keeper(std::move(keeper)));
}

// Keeps an object until the last owner goes, with or without the GIL: then it is let go of by let_go_of_objects(), or
// when the interpreter next has the time; not any more when that has ended.
std::shared_ptr<void> kept(nanobind::object object);
// Releases the objects that no operation keeps any more. The caller holds the GIL.
void let_go_of_objects();

// An operation under way keeps its arrays, even if its future is dropped before.
class PyFuture {
 public:
  PyFuture(Future future, nanobind::object arrays) : future_(std::move(future)) {
    if (future_.is_under_way()) future_.keep(kept(std::move(arrays)));
  }
  bool done() {
    bool done = false;
    without_gil([&] { done = future_.done(); });
    let_go_of_objects();
    return done;
  }
  void wait() {
    without_gil([this] { future_.wait(); });
    let_go_of_objects();
  }
  Future* future() { return &future_; }

 private:
  Future future_;
};

void bind_messages(nanobind::module_& m, nanobind::class_<Group>& type);
void bind_collectives(nanobind::class_<Group>& type);
void bind_prepared(nanobind::module_& m, nanobind::class_<Group>& type);
void bind_torch_calls(nanobind::class_<Group>& type);
void bind_windows(nanobind::module_& m, nanobind::class_<Group>& type);

}  // namespace waywiser
