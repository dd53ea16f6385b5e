#pragma once

#include <memory>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/proxy/proxy_part.hpp"
#include "waywiser/collective/proxy/staged_copies.hpp"
#include "waywiser/comm/session/execution.hpp"

namespace waywiser {

// What a collective of the hosts works on; pieces of GPU memory, which lie one behind the other in what the schedule
// sees.
struct ProxiedArrays {
  std::vector<Region> input, output;
  bool same = false;  // the output is the input
  bool reads_input = true, writes_output = true;
};

// A schedule on arrays of a GPU: a copy to the host, the messages, a copy back.
class ProxiedCollective : public ProxyPart {
 public:
  ProxiedCollective(Session& session, std::shared_ptr<const Members> members, const Call& call,
                    std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays);

  bool advance() override;
  bool lets_stream_go() const override { return false; }
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  enum class Stage { begins, fetches, runs, puts_back };

  void fetch();
  void run();

  Session& session_;
  const std::shared_ptr<const Members> members_;
  const Call call_;
  const std::shared_ptr<const Schedule> schedule_;
  const ProxiedArrays arrays_;
  std::unique_ptr<StagedCopies> input_, output_;
  Execution execution_;
  Stage stage_ = Stage::begins;
};

// The same schedule among some ranks of a group, in their order, as ranks of the group.
Schedule among(const Schedule& schedule, const std::vector<int>& some, int rank, int ranks);

}  // namespace waywiser
