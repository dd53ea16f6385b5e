#include <unistd.h>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/channel_flags.hpp"
#include "waywiser/measure/flag_page.hpp"
#include "waywiser/measure/pair_side.hpp"
#include "waywiser/measure/platform_choice.hpp"
#include "waywiser/measure/this_side.hpp"

namespace waywiser {
namespace {

constexpr std::string_view what = "command to the peer process";
constexpr Seconds longest_idle = 24 * 3600;
constexpr Seconds answer_patience = 10;
constexpr double longest_command = 24 * 3600;

ErrorKind kind_of(const std::exception& problem) {
  const auto* error = dynamic_cast<const Error*>(&problem);
  return error == nullptr ? ErrorKind::device : error->kind();
}

void report(PeerChannel& channel, const std::exception& problem) {
  const Json answer{{"error", problem.what()}, {"kind", static_cast<int>(kind_of(problem))}};
  try {
    channel.send(answer, Deadline::in(answer_patience));
  } catch (const Error&) {  // the initiator has gone
  }
}

class Service {
 public:
  explicit Service(PeerChannel& channel) : channel_(channel) {}

  // Returns only by an exception: the initiator ends by closing its channel.
  void serve() {
    for (;;) {
      auto [command, descriptors] = channel_.receive(Deadline::in(longest_idle));
      const double seconds = require_number(command, "seconds", what);
      const Deadline deadline = Deadline::in(std::min(seconds, longest_command));
      const Json answer = side_ ? side_->perform(command, deadline) : begin(command, descriptors);
      channel_.send({{"answer", answer}}, Deadline::in(answer_patience));
    }
  }

 private:
  Json begin(const Json& command, std::vector<Descriptor>& descriptors) {
    const std::string verb = require_string(command, "do", what);
    if (verb != "begin_between_machines" && (descriptors.size() != 1 || verb != "begin"))
      throw Error(ErrorKind::invalid_input, std::string(what) + ": the first one must be 'begin' with a shared page");
    platform_ = open_platform(platform_choice_from_json(require(command, "platform", what), what));
    if (verb == "begin")
      flags_ = std::make_unique<FlagPage>(Role::peer, std::move(descriptors.front()), channel_);
    else
      flags_ = std::make_unique<ChannelFlags>(channel_);
    side_.emplace(*platform_, Role::peer, channel_, *flags_);
    Json answer{{"process", ::getpid()}};
    if (verb != "begin") answer["side"] = to_json(this_side(*platform_));
    return answer;
  }

  PeerChannel& channel_;
  std::unique_ptr<Platform> platform_;
  std::unique_ptr<Flags> flags_;
  std::optional<PairSide> side_;
};

}  // namespace

int serve_as_peer(PeerSocket line) {
  PeerChannel channel(std::move(line));
  Service service(channel);
  try {
    service.serve();
  } catch (const std::exception& problem) {
    if (channel.peer_ended()) return 0;
    report(channel, problem);
  }
  return 1;
}

}  // namespace waywiser
