#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/proxy/proxy_part.hpp"
#include "waywiser/collective/proxy/stream_staging.hpp"
#include "waywiser/comm/session/execution.hpp"

namespace waywiser {

// The arrays of a collective of the hosts: pieces of GPU memory, which the schedule sees as consecutive.
struct ProxiedArrays {
  std::vector<Region> input, output;
  bool same = false;  // output and input are the same
  bool reads_input = true, writes_output = true;
};

// A schedule on GPU arrays: a copy to the host, the messages, a copy back.
class ProxiedCollective : public ProxyPart {
 public:
  ProxiedCollective(Session& session, std::shared_ptr<const Members> members, const Call& call,
                    std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays);

  void take(StreamStaging& staging) override;
  void fetch(Stream& stream) override;
  std::vector<Region> outputs() const override {
    return arrays_.writes_output ? arrays_.output : std::vector<Region>();
  }
  void put_back(Stream& stream) override;
  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override { execution_.abandon(); }

 private:
  const StagedPieces& result() const { return arrays_.same ? *input_ : *output_; }

  const std::shared_ptr<const Members> members_;
  const Call call_;
  const std::shared_ptr<const Schedule> schedule_;
  const ProxiedArrays arrays_;
  std::optional<StagedPieces> input_, output_;
  Execution execution_;
  bool runs_ = false;
};

// A schedule made for some ranks, renumbered to their numbers in the group.
Schedule among(const Schedule& schedule, const std::vector<int>& some, int rank, int ranks);

}  // namespace waywiser
