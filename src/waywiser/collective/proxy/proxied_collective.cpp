#include "waywiser/collective/proxy/proxied_collective.hpp"

namespace waywiser {

ProxiedCollective::ProxiedCollective(Session& session, std::shared_ptr<const Members> members, const Call& call,
                                     std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays)
    : members_(std::move(members)),
      call_(call),
      schedule_(std::move(schedule)),
      arrays_(std::move(arrays)),
      execution_(session) {}

void ProxiedCollective::take(StreamStaging& staging) {
  input_.emplace(staging, arrays_.input);
  if (!arrays_.same) output_.emplace(staging, arrays_.output);
}

void ProxiedCollective::fetch(Stream& stream) {
  if (arrays_.reads_input) input_->fetch(stream);
}

void ProxiedCollective::put_back(Stream& stream) {
  if (arrays_.writes_output) result().put_back(stream);
}

bool ProxiedCollective::advance() {
  if (!std::exchange(runs_, true))
    execution_.begin(members_, call_, schedule_, {input_->on_host(), call_.type}, {result().on_host(), call_.type});
  return execution_.advance();
}

std::string ProxiedCollective::progress_text() const { return runs_ ? execution_.progress_text() : "it has not begun"; }

Schedule among(const Schedule& schedule, const std::vector<int>& some, int rank, int ranks) {
  Schedule wide = schedule;
  wide.rank = rank;
  wide.ranks = ranks;
  for (Step& step : wide.steps)
    if (step.peer >= 0) step.peer = some[static_cast<std::size_t>(step.peer)];
  return wide;
}

}  // namespace waywiser
