#pragma once

#include "waywiser/comm/session/activity.hpp"

namespace waywiser {

// One part of an operation on a stream that the host carries out: a message, or a collective. It begins with its first
// turn, when the stream has got there.
class ProxyPart : public Activity {
 public:
  // The stream may go on: the arrays are complete, or not needed any more.
  virtual bool lets_stream_go() const = 0;
  // The messages of later parts may go: those of this one are on their way, so that they come in order.
  virtual bool has_posted() const { return true; }
};

}  // namespace waywiser
