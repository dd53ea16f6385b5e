#include "waywiser/offload/secret_pair.hpp"

#include "waywiser/comm/bootstrap/join_options.hpp"

namespace waywiser {
namespace {

constexpr std::size_t digits_of_job = 16;  // of the secret, for the name; the others are the secret of the group

JoinOptions options_of(const SecretPair& pair, int rank) {
  JoinOptions options = usual_options();
  options.launch = Launch{"remote GPU",
                          rank,
                          2,
                          "remote-" + std::string(pair.purpose) + "-" + pair.secret.substr(0, digits_of_job),
                          pair.root,
                          Secret(pair.secret.substr(digits_of_job))};
  options.timeout = pair.timeout;
  options.encrypt = pair.encrypt;
  options.platform = pair.platform;
  options.interrupted = pair.interrupted;
  return options;
}

}  // namespace

Group SecretPair::wait(const std::function<void(const std::string& address)>& announce) const {
  JoinOptions options = options_of(*this, 0);
  options.announce = [&](const Endpoint& at) { announce(text(at)); };
  return Group::join(options);
}

Group SecretPair::join() const { return Group::join(options_of(*this, 1)); }

}  // namespace waywiser
