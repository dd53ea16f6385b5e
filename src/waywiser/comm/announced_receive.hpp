#pragma once

#include "waywiser/comm/announcement.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/pieces.hpp"

namespace waywiser {

// What follows at the receiver when an announcement has come.
class AnnouncedReceive : public Activity {
 public:
  // `peer`: the sender, as a rank of the whole session.
  AnnouncedReceive(Session& session, const Call& call, std::uint32_t peer, ucp_tag_t announcement, Elements into);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return pieces_.progress_text("arrived"); }
  void abandon() noexcept override;

 private:
  void offer();
  void follow(std::uint32_t way);

  Session& session_;
  Call call_;
  std::uint32_t peer_;
  unsigned number_;
  Region into_;
  AnnouncementReply reply_;
  AnnouncementVerdict verdict_;
  Message replied_, told_;
  bool in_pieces_ = false;
  Pieces pieces_;
};

}  // namespace waywiser
