#include "waywiser/comm/bootstrap/launch.hpp"

#include <unistd.h>

#include <charconv>

#include "waywiser/base/ancestors.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/launchers.hpp"

namespace waywiser {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::invalid_input, why); }

// torch.distributed itself uses the port.
std::uint16_t port_beside_torch(const Lookup& lookup) {
  const std::string text = lookup("MASTER_PORT").value_or("");
  int port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || end != text.data() + text.size() || port < 1 || port > 65534)
    refuse("MASTER_PORT=" + quoted(text, 40) + " is no number from 1 to 65534");
  return static_cast<std::uint16_t>(port + 1);
}

std::optional<Endpoint> root_of(const Started& started, const Lookup& lookup) {
  if (const auto root = lookup("WAYWISER_ROOT")) return parse_endpoint(*root);
  if (started.machines == 1) return {};
  if (started.launcher != "torchrun" || !lookup("MASTER_ADDR"))
    refuse(started.launcher +
           " started ranks on several machines: set WAYWISER_ROOT to HOST:PORT of rank 0's machine and WAYWISER_SECRET "
           "to one secret, the same for all ranks");
  return Endpoint{*lookup("MASTER_ADDR"), port_beside_torch(lookup)};
}

std::string secret_for(const std::optional<Endpoint>& root, const Lookup& lookup) {
  const std::string secret = lookup("WAYWISER_SECRET").value_or("");
  if (secret.empty() && !root) return secret;
  if (secret.size() < shortest_secret)
    refuse("WAYWISER_SECRET must have at least " + std::to_string(shortest_secret) +
           " characters, the same in all ranks" + (secret.empty() ? "; it is not set" : ""));
  return secret;
}

Launch launch_of(const Started& started, const Lookup& lookup) {
  Launch launch;
  launch.launcher = started.launcher;
  launch.rank = started.rank;
  launch.size = started.size;
  launch.job = started.job;
  launch.machine = lookup("WAYWISER_MACHINE").value_or("");
  if (launch.size == 1) return launch;
  launch.root = root_of(started, lookup);
  launch.secret = secret_for(launch.root, lookup);
  if (!launch.root && launch.job.empty())
    refuse(launch.launcher +
           " has not named its job: set WAYWISER_ROOT to HOST:PORT of rank 0's machine and WAYWISER_SECRET to one "
           "secret, the same for all ranks");
  return launch;
}

}  // namespace

Launch read_launch(const Lookup& lookup) {
  const auto parent = [] { return std::vector<Ancestor>{{std::to_string(::getppid()), "", "none"}}; };
  return launch_of(who_started(lookup, parent), lookup);
}

Launch read_launch() {
  return launch_of(who_started(), [](std::string_view name) { return environment(name); });
}

}  // namespace waywiser
