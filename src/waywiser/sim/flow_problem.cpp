#include "waywiser/sim/flow_problem.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/sim/event_loop.hpp"

namespace waywiser::sim {
namespace {

class FlowEnds : public Listener {
 public:
  FlowEnds(const EventLoop& engine, std::size_t flows) : engine_(engine), at_(flows) {}
  void wake(std::uint64_t flow) override { at_[flow] = engine_.now(); }
  const std::vector<Seconds>& at() const { return at_; }

 private:
  const EventLoop& engine_;
  std::vector<Seconds> at_;
};

std::vector<Use> uses_of(const Json& flow, std::size_t links) {
  std::vector<Use> uses;
  for (const Json& link : require_array(flow, "links", "flows")) {
    if (!link.is_number_unsigned() || link.get<std::size_t>() >= links)
      throw Error(ErrorKind::invalid_input, "flows: a link is a number from 0 to " + std::to_string(links) + " - 1");
    uses.push_back({link.get<LinkId>(), 1});
  }
  return uses;
}

}  // namespace

Json flow_ends(const Json& problem) {
  EventLoop engine;
  for (const Json& capacity : require_array(problem, "capacities", "flows"))
    engine.network().add_link(capacity.is_number() ? capacity.get<double>() : 0);
  const Json& flows = require_array(problem, "flows", "flows");
  FlowEnds ends(engine, flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i)
    engine.transfer(uses_of(flows[i], engine.network().links()), no_cap, require_number(flows[i], "bytes", "flows"),
                    require_number(flows[i], "begin", "flows"), ends, i);
  engine.run();
  return ends.at();
}

}  // namespace waywiser::sim
