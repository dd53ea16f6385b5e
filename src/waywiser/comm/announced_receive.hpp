#pragma once

#include "waywiser/comm/announcement.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/gpu_roads.hpp"
#include "waywiser/comm/pieces.hpp"

namespace waywiser {

// What follows at the receiver when an announcement has come.
class AnnouncedReceive : public Activity {
 public:
  // `peer`: the sender, as a rank of the whole session.
  AnnouncedReceive(Session& session, const Call& call, std::uint32_t peer, ucp_tag_t announcement, Elements into);
  AnnouncedReceive(const AnnouncedReceive&) = delete;
  AnnouncedReceive& operator=(const AnnouncedReceive&) = delete;
  ~AnnouncedReceive() override;

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  enum class Stage { hears, reads, waits, pieces, done };

  void listen(void* what, Bytes bytes);
  bool read();
  void reply(Way way);
  void offer();
  void ask_for_it();
  void take_verdict();
  void follow(std::uint32_t way);

  Session& session_;
  Call call_;
  std::uint32_t peer_;
  unsigned number_;
  Region into_;
  AnnouncedSource source_;
  AnnouncementReply reply_;
  AnnouncementVerdict verdict_;
  Message replied_, told_;
  Stage stage_ = Stage::hears;
  GpuRoads::Road* road_ = nullptr;
  Pieces pieces_;
};

}  // namespace waywiser
