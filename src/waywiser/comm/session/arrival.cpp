#include "waywiser/comm/session/arrival.hpp"

#include <cstdio>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/plan_fingerprint.hpp"
#include "waywiser/comm/bootstrap/sharing.hpp"
#include "waywiser/comm/network/encryption.hpp"
#include "waywiser/comm/session/neighbours.hpp"
#include "waywiser/comm/session/session_options.hpp"
#include "waywiser/comm/shared_memory/cores.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/topology/discover.hpp"
#include "waywiser/topology/system_files.hpp"

namespace waywiser {
namespace {

std::unique_ptr<EncryptedMessages> encrypted_messages(const JoinOptions& options) {
  const bool wanted = *options.encrypt && !is_within_a_machine(*options.launch);
  return wanted ? encrypted_messages(*options.launch, options.chooser.get()) : nullptr;
}

// Only such a card keeps registrations of memory.
bool uses_rdma(const Launch& launch) {
  return !is_within_a_machine(launch) && !SystemFiles("").list("/sys/class/infiniband").empty();
}

// If it is unknown, the paths to the plan's first type of node are used.
std::string node_of_this_machine() {
  try {
    return fingerprint(discover());
  } catch (const Error& error) {
    std::fprintf(stderr, "waywiser: the type of this node is not known: %s\n", error.what());
    return {};
  }
}

}  // namespace

Arrival::Arrival(const JoinOptions& options)
    : options_(with_environment(options)), timeout_(timeout_of(options)), deadline_(Deadline::in(timeout_)) {
  const Launch& launch = *options_.launch;
  const UcxLibrary& ucx = ucx_library(uses_rdma(launch));
  if (!ucx.usable()) throw Error(ErrorKind::unavailable, ucx.why_not());
  encrypted_ = encrypted_messages(options_);
  const ReachTrial trial;
  Introduction mine = introduction();
  mine.reach = trial.offer();
  muster_ = meet(launch, mine, deadline_, options_.announce, options_.interrupted);
  const LocalWays ways = find_neighbours(muster_, launch, deadline_, options_.interrupted);
  sharing_shm_ = ways.sharing_shm;
  try {
    network_ = job_network(launch, options_.chooser ? &options_.chooser->plan() : nullptr, *options_.encrypt, ways);
  } catch (const Error& error) {
    leave(error);
    throw;
  }
  if (ways.speaks) say(network_.note);
}

void Arrival::leave(const Error& error) noexcept {
  if (error.kind() != ErrorKind::interrupted)
    tell_refusal(muster_, "rank " + std::to_string(options_.launch->rank) + ": " + error.what());
}

void Arrival::say(const std::string& note) const {
  if (!note.empty()) std::fputs(("waywiser: " + note + "\n").c_str(), stderr);
}

Introduction Arrival::introduction() const {
  Introduction mine = waywiser::introduce(*options_.launch);
  mine.ucx = ucx_library().version();
  mine.plan = options_.chooser ? plan_fingerprint(*options_.chooser) : "";
  mine.gpus = options_.open_platform != nullptr || (options_.platform && options_.platform->gpu_count() > 0);
  mine.cores = cores_of_this_process();
  mine.encrypted = encrypted_ ? encrypted_->offer() : "";
  return mine;
}

Engine Arrival::open_engine() {
  return Engine(muster_.ranks.size(), network_.settings, NetworkPaths(network_.open ? options_.chooser : nullptr),
                std::move(encrypted_), options_.chooser.get());
}

void Arrival::introduce(Engine& engine) {
  const auto rank = static_cast<std::size_t>(options_.launch->rank);
  Introduction& mine = muster_.ranks[rank];
  mine.address = engine.ucx().address();
  mine.rails = engine.rails();
  mine.mailbox = engine.mailboxes().offer();
  if (engine.ways().tells_nodes_apart()) mine.node = options_.node ? *options_.node : node_of_this_machine();
  WireWriter writer;
  write_offers(writer, mine);
  if (muster_.ranks.size() > 1) {
    const SharedParts offers =
        share_with_all(muster_, options_.launch->rank, writer.bytes(), deadline_, options_.interrupted);
    for (std::size_t other = 0; other < offers.size(); ++other) {
      WireReader reader(offers[other], "offers of rank " + std::to_string(other));
      read_offers(reader, muster_.ranks[other]);
      reader.end();
    }
  }
  const bool has_key = options_.launch->root || network_.loopback;
  engine.ucx().set_tag_key(has_key ? muster_.tag_key : 0);
  if (network_.shm && sharing_shm_ != 0) engine.ucx().watch_shm(sharing_shm_);
  engine.introduce(muster_.ranks, static_cast<std::uint32_t>(rank));
}

}  // namespace waywiser
