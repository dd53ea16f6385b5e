#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/comm/gpu_roads.hpp"
#include "waywiser/comm/session.hpp"
#include "waywiser/comm/tag.hpp"
#include "waywiser/transport/ucx_staged/staging_ring.hpp"

namespace waywiser {

// One message in pieces through host memory: while one is copied, the next one is on its way. Used by the sender, whose
// bytes are on a GPU, and by the receiver, whose place may be either.
class Pieces {
 public:
  Pieces(Session& session, std::uint32_t peer, ucp_tag_t tag) : session_(session), peer_(peer), tag_(tag) {}
  // Before the first piece: by one of the plan's ways between machines, as it stages, or not staged at all.
  void go_by(std::size_t way);
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces();

  // What was begun goes on with each call, without waiting. True: all done.
  bool send(ConstRegion source);
  bool receive(Region destination);
  std::string progress_text(const char* what) const;
  void abandon() noexcept;
  bool is_open() const noexcept;

 private:
  struct Slot {
    Memory memory;
    std::unique_ptr<Event> copied;
    Message message;
  };

  Slot& slot(Bytes piece) { return slots_[piece % slots_.size()]; }
  bool staged(Place place) const { return place.is_gpu() && !at_once_; }
  Bytes piece_bytes(Bytes bytes) const { return at_once_ ? bytes : shape_.chunk_of(bytes); }
  Bytes length_of(Bytes piece, Bytes bytes) const;
  Bytes begin(Bytes bytes);
  void prepare(Slot& slot, Place gpu, Bytes bytes);
  void post_send(Slot& slot, ConstRegion part);
  void post_receive(Slot& slot, Region part);
  void copy(Slot& slot, Region destination, ConstRegion source, Place gpu);
  void check_length(const Message& message, Bytes bytes) const;

  Session& session_;
  std::uint32_t peer_;
  ucp_tag_t tag_;
  std::optional<std::size_t> way_;  // nothing: as UCX chooses
  StagingShape shape_{Allocation::pinned, Bytes{1} << 20, 4};
  bool at_once_ = false;  // UCX reads and writes the GPUs
  std::vector<Slot> slots_;
  Bytes begun_ = 0, passed_ = 0, ended_ = 0;  // pieces: in their first stage, in their second, done
};

}  // namespace waywiser
