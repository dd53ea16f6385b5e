#pragma once

#include "waywiser/comm/announcement.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/gpu_roads.hpp"
#include "waywiser/comm/members.hpp"
#include "waywiser/comm/pieces.hpp"

namespace waywiser {

// A message out of GPU memory: announced, then put where the receiver says by the plan's path, or sent in pieces.
class AnnouncedSend : public Activity {
 public:
  // `number`: taken of the session, given back at the end.
  AnnouncedSend(Session& session, const Members& members, const Call& call, int label, ConstElements data,
                unsigned number);
  AnnouncedSend(const AnnouncedSend&) = delete;
  AnnouncedSend& operator=(const AnnouncedSend&) = delete;
  ~AnnouncedSend() override;

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  enum class Stage { waits, copies, pieces, tells, done };

  void offer();
  void read_reply();
  void check_reply() const;
  void start_copy();
  void tell(Way way, const std::string& why);
  void end();
  void tell_pieces();
  std::string choose_network_way();

  Session& session_;
  Call call_;
  ConstElements data_;
  std::uint32_t peer_;
  unsigned number_;
  Stage stage_ = Stage::waits;
  AnnouncedSource source_;
  Message announced_, offered_, replied_, told_;
  AnnouncementReply reply_;
  AnnouncementVerdict verdict_;
  GpuRoads::Road* road_ = nullptr;
  Pieces pieces_;
};

}  // namespace waywiser
