#include "waywiser/heap/proxy/heap_proxy.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "waywiser/comm/session/in_call.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 5;  // at the end, for the kernel of a delivery

}  // namespace

using one_sided::ProxyRing, one_sided::proxy_slots;

HeapProxy::HeapProxy(const Group& group, const std::shared_ptr<Platform>& platform, Region memory,
                     const std::vector<int>& peers)
    : messages_(group, CallKind::put) {
  const Place place = memory.place;
  const Place near = place.is_gpu() ? platform->nearest_host(place.index) : place;
  ring_ = platform->allocate(near, sizeof(ProxyRing), place.is_gpu() ? Allocation::pinned : Allocation::pageable);
  auto* ring = new (ring_.region().data) ProxyRing;
  for (std::uint64_t ticket = 0; ticket < proxy_slots; ++ticket) ring->slot(ticket).free_for = ticket;
  const std::lock_guard lock(messages_.session());
  arrivals_ = std::make_unique<ProxyArrivals>(messages_, platform, memory, peers);
  requests_ = std::make_unique<ProxyRequests>(messages_, *ring, peers);
}

ProxyRing* HeapProxy::ring(const Stream* stream) const {
  const Region region = ring_.region();
  return reinterpret_cast<ProxyRing*>(stream == nullptr ? region.data : stream->reach(region));
}

void HeapProxy::start(std::shared_ptr<HeapProxy> proxy) {
  Session& session = proxy->messages_.session();
  const std::lock_guard lock(session);
  session.need_progress_thread();
  session.start(std::move(proxy));
}

bool HeapProxy::advance() {
  if (is_over_) return true;
  const bool asked = requests_->advance(), came = arrivals_->advance();
  if (asked || came) messages_.session().note_moved();
  return false;
}

void HeapProxy::complete() {
  Session& session = messages_.session();
  Call call = messages_.call();
  call.kind = CallKind::wait;
  const InCall in_call(session, call);
  session.wait(call, [this] { return requests_->are_complete(); }, [this] { return progress_text(); });
}

void HeapProxy::end() noexcept {
  Session& session = messages_.session();
  if (session.is_forked()) return;
  const WhenFree lock(session.call_lock());
  arrivals_->settle(patience);
  if (std::exchange(is_over_, true)) return;
  requests_->cancel();
  arrivals_->cancel();
}

void HeapProxy::abandon() noexcept {
  if (std::exchange(is_over_, true)) return;
  requests_->cancel();
  arrivals_->cancel();
}

}  // namespace waywiser
