#include "waywiser/collective/proxy/proxied_collective.hpp"

namespace waywiser {

ProxiedCollective::ProxiedCollective(Session& session, std::shared_ptr<const Members> members, const Call& call,
                                     std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays)
    : session_(session),
      members_(std::move(members)),
      call_(call),
      schedule_(std::move(schedule)),
      arrays_(std::move(arrays)),
      execution_(session) {}

void ProxiedCollective::fetch() {
  stage_ = Stage::fetches;
  input_ = std::make_unique<StagedCopies>(session_, arrays_.input);
  if (!arrays_.same) output_ = std::make_unique<StagedCopies>(session_, arrays_.output);
  if (arrays_.reads_input) input_->fetch();
}

void ProxiedCollective::run() {
  stage_ = Stage::runs;
  const Region in = input_->on_host(), out = arrays_.same ? in : output_->on_host();
  execution_.begin(members_, call_, schedule_, {in, call_.type}, {out, call_.type});
}

bool ProxiedCollective::advance() {
  if (stage_ == Stage::begins) fetch();
  if (stage_ == Stage::fetches) {
    if (!input_->done()) return false;
    run();
  }
  StagedCopies& result = arrays_.same ? *input_ : *output_;
  if (stage_ == Stage::runs) {
    if (!execution_.advance()) return false;
    stage_ = Stage::puts_back;
    if (arrays_.writes_output) result.put_back();
  }
  return result.done();
}

std::string ProxiedCollective::progress_text() const {
  if (stage_ == Stage::runs) return execution_.progress_text();
  return stage_ == Stage::puts_back ? "the copy of its result has not ended" : "its copy to the host has not ended";
}

void ProxiedCollective::abandon() noexcept {
  execution_.abandon();
  for (const auto& copies : {input_.get(), output_.get()})
    if (copies != nullptr) copies->abandon();
}

Schedule among(const Schedule& schedule, const std::vector<int>& some, int rank, int ranks) {
  Schedule wide = schedule;
  wide.rank = rank;
  wide.ranks = ranks;
  for (Step& step : wide.steps)
    if (step.peer >= 0) step.peer = some[static_cast<std::size_t>(step.peer)];
  return wide;
}

}  // namespace waywiser
