#pragma once

#include <memory>
#include <utility>

namespace waywiser {

class Activity;
class Session;
class Stream;

// When a call is complete.
class Mode {
 public:
  // When it returns.
  static const Mode wait;
  // When the future that it returns is. The arrays must live until then, and not overlap unless they are the same;
  // those of GPUs go through host memory, since no rank may wait for another in here.
  static const Mode begin;
  // When the stream is through: it is enqueued behind what is in it. The stream is of the GPU that has the arrays.
  static constexpr Mode on(Stream& stream) noexcept { return Mode(&stream, false); }

  constexpr Stream* stream() const noexcept { return stream_; }  // null: none
  constexpr bool begins() const noexcept { return begins_; }

 private:
  constexpr Mode(Stream* stream, bool begins) noexcept : stream_(stream), begins_(begins) {}

  Stream* stream_;
  bool begins_;
};

inline constexpr Mode Mode::wait{nullptr, false};
inline constexpr Mode Mode::begin{nullptr, true};

// What a call returns: done, unless the call has only begun (Mode::begin). The memory that such a call was given must
// live until it is done. A future that goes before ends the operation, and with it the group, unless it keeps the
// memory: then the operation goes on.
class [[gnu::visibility("default")]] Future {
 public:
  Future() = default;  // done
  // Null: done.
  Future(std::shared_ptr<Session> session, std::shared_ptr<Activity> operation);
  Future(Future&& other) noexcept = default;
  Future& operator=(Future&& other) noexcept {
    if (operation_) drop();
    session_ = std::move(other.session_);
    operation_ = std::move(other.operation_);
    return *this;
  }
  ~Future() {
    if (operation_) drop();
  }

  // As far as is known without a look.
  bool is_under_way() const noexcept { return operation_ != nullptr; }
  // What the operation keeps until it is over, whatever becomes of this future: the owner of its memory.
  void keep(std::shared_ptr<void> owner);

  // Gives everything of the group that is under way a turn. Throws what wait() would.
  bool done();
  // Throws timeout, io when the group has failed, invalid_input when the ranks' calls do not fit together.
  void wait();

 private:
  void finish() noexcept;
  void drop() noexcept;

  std::shared_ptr<Session> session_;
  std::shared_ptr<Activity> operation_;
};

}  // namespace waywiser
