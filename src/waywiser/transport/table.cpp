#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/bar_copy/bar_copy.hpp"
#include "waywiser/transport/copy_engine/copy_engine.hpp"
#include "waywiser/transport/courier/courier.hpp"
#include "waywiser/transport/host_copy/host_copy.hpp"
#include "waywiser/transport/host_staged/host_staged.hpp"
#include "waywiser/transport/relay/relay.hpp"
#include "waywiser/transport/sm_copy/sm_copy.hpp"
#include "waywiser/transport/split/split.hpp"
#include "waywiser/transport/tls/tls_transport.hpp"
#include "waywiser/transport/transport.hpp"
#include "waywiser/transport/ucx/ucx_transport.hpp"
#include "waywiser/transport/ucx_staged/ucx_staged.hpp"

namespace waywiser {

std::span<const Mechanism> mechanisms() {
  static const Mechanism rows[] = {
      copy_engine_mechanism(), sm_copy_mechanism(),    host_copy_mechanism(), host_staged_mechanism(),
      bar_copy_mechanism(),    courier_mechanism(),    relay_mechanism(),     split_mechanism(),
      ucx_mechanism(),         ucx_staged_mechanism(), tls_mechanism(),
  };
  return rows;
}

const Mechanism* find_mechanism(std::string_view name) {
  const auto rows = mechanisms();
  const auto found = std::ranges::find(rows, name, &Mechanism::name);
  return found == rows.end() ? nullptr : &*found;
}

bool is_two_sided(const Path& path) {
  const Mechanism* row = find_mechanism(path.mechanism);
  return row != nullptr && row->two_sided && path.processes == 2;
}

bool runs_alone_on(const Path& path, Place worker) {
  if (path.mechanism == "split")
    return std::ranges::all_of(split_ways(path), [&](const Path& way) { return runs_alone_on(way, worker); });
  const Mechanism* row = find_mechanism(path.mechanism);
  return row != nullptr && !is_two_sided(path) && row->works_on(path) == worker;
}

bool encrypts(const Path& path) {
  const Mechanism* row = find_mechanism(path.mechanism);
  return row != nullptr && row->encrypts;
}

PeerChannel& peer_of(const Path& path, const TransportContext& context) {
  if (context.peer == nullptr) throw Error(ErrorKind::invalid_input, label(path) + " needs a peer process");
  return *context.peer;
}

std::optional<std::string> why_unavailable(const Path& path, const TransportContext& context) {
  const Mechanism* row = find_mechanism(path.mechanism);
  if (row == nullptr) return "there is no mechanism of this name";
  for (const Place place : {path.source, path.destination}) {
    if (place.is_gpu() && !place.other_machine() && place.index >= context.platform.gpu_count())
      return "there is no GPU " + std::to_string(place.index) + " here (" +
             std::to_string(context.platform.gpu_count()) + " in the " + std::string(context.platform.backend()) +
             " back end)";
  }
  return row->why_unavailable(path, context);
}

std::unique_ptr<Transport> open_transport(const Path& path, const TransportContext& context) {
  if (const auto why = why_unavailable(path, context))
    throw Error(ErrorKind::unavailable, path.mechanism + ": " + *why);
  return find_mechanism(path.mechanism)->open(path, context);
}

}  // namespace waywiser
