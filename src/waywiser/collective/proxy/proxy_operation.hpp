#pragma once

#include <memory>
#include <vector>

#include "waywiser/collective/on_stream/stream_gate.hpp"
#include "waywiser/collective/proxy/proxy_part.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// An operation on a stream that the host carries out while the stream waits at a gate: when the stream has got there
// its parts begin; when they are over, or need the arrays no more, the stream goes on.
class ProxyOperation : public Activity {
 public:
  using Parts = std::vector<std::unique_ptr<ProxyPart>>;
  // `reached`: recorded in the stream before the gate with that number.
  ProxyOperation(Session& session, const Call& call, std::unique_ptr<Event> reached, std::shared_ptr<StreamGate> gate,
                 std::uint64_t number, Parts parts);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  void look_at_clock();
  void let_stream_go();

  Session& session_;
  const Call call_;
  const std::unique_ptr<Event> reached_;
  const std::shared_ptr<StreamGate> gate_;
  const std::uint64_t number_;
  Parts parts_;
  Seconds since_ = 0, tell_at_ = 0;  // when it has begun
  bool opened_ = false;
};

}  // namespace waywiser
