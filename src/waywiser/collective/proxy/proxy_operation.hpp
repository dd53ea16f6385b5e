#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/collective/on_stream/stream_gate.hpp"
#include "waywiser/collective/proxy/proxy_part.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// An operation on a stream that the host carries out: its parts begin when the stream has reached it and all operations
// that were made before it have begun; when all parts that hold the stream are over, the stream passes the gate.
class ProxyOperation : public Activity {
 public:
  using Parts = std::vector<std::unique_ptr<ProxyPart>>;
  // Both numbers belong to the gate; with ends == 0 the stream does not wait.
  ProxyOperation(Session& session, const Call& call, std::shared_ptr<StreamGate> gate, std::uint64_t begins,
                 std::uint64_t ends, Parts parts);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  void look_at_clock();
  void let_stream_go();

  Session& session_;
  const Call call_;
  const std::shared_ptr<StreamGate> gate_;
  const std::uint64_t begins_, ends_, turn_;
  Parts parts_;
  Seconds since_ = 0, tell_at_ = 0;  // when it began
  bool opened_ = false;
};

}  // namespace waywiser
