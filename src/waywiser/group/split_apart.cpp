#include "waywiser/group/split_apart.hpp"

#include <span>

#include "waywiser/base/secret.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"
#include "waywiser/comm/bootstrap/unique_id.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {

// The parts share no session with the group, since a session fails as a whole. They meet where the job has met.
std::optional<Group> split_apart(Group& group, int color, int key) {
  std::optional<Group> part = group.split(color, key);
  if (!part) return {};
  JoinOptions options = session_of(group).options();
  options.timeout = group.timeout();
  options.announce = nullptr;
  const std::optional<Endpoint>& root = options.launch->root;
  UniqueId id{};
  throw_at_all(*part, failure_of([&] {
    if (part->rank() == 0) id = make_unique_id(root && !is_loopback(*root) ? root->host : "");
  }));
  part->broadcast(std::span(id), 0);
  options.launch = launch_by(id, part->rank(), part->size());
  wipe(id);
  return Group::join(options);
}

}  // namespace waywiser
