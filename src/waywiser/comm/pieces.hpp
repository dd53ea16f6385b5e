#pragma once

#include <array>
#include <memory>
#include <string>

#include "waywiser/comm/gpu_roads.hpp"
#include "waywiser/comm/session.hpp"
#include "waywiser/comm/tag.hpp"

namespace waywiser {

// One message in pieces through page-locked memory: while one is copied, the next one is on its way. Used by the
// sender, whose bytes are on a GPU, and by the receiver, whose place may be either.
class Pieces {
 public:
  Pieces(Session& session, std::uint32_t peer, ucp_tag_t tag) : session_(session), peer_(peer), tag_(tag) {}
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces();

  // What was begun goes on with each call, without waiting. True: all done.
  bool send(ConstRegion source);
  bool receive(Region destination);
  std::string progress_text(const char* what) const;
  void abandon() noexcept;

 private:
  static constexpr std::size_t depth = 4;
  struct Slot {
    Memory memory;
    std::unique_ptr<Event> copied;
    Message message;
  };

  Slot& slot(Bytes piece) { return slots_[piece % depth]; }
  void prepare(Slot& slot, Place gpu, Bytes bytes);
  void copy(Slot& slot, Region destination, ConstRegion source, Place gpu);
  void check_length(const Message& message, Bytes bytes) const;

  Session& session_;
  std::uint32_t peer_;
  ucp_tag_t tag_;
  std::array<Slot, depth> slots_;
  Bytes begun_ = 0, passed_ = 0, ended_ = 0;  // pieces: in their first stage, in their second, done
};

}  // namespace waywiser
