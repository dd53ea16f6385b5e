#pragma once

namespace waywiser {

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

}  // namespace waywiser
