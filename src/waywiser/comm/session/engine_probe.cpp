#include <algorithm>

#include "waywiser/comm/session/engine.hpp"

namespace waywiser {

// UCX has the messages of peers that nothing else reaches, among them this rank itself.
std::optional<ucp_tag_recv_info_t> Engine::probe_ucx(std::span<const int> peers, ucp_tag_t tag, ucp_tag_t mask) const {
  const auto is_with_ucx = [this](int peer) {
    const auto rank = static_cast<std::uint32_t>(peer);
    return !mailboxes_.reaches(rank) && !is_encrypted(rank);
  };
  ucp_tag_recv_info_t info{};
  if (std::ranges::none_of(peers, is_with_ucx) || !worker_.probe(tag ^ tag_key_, mask, info)) return {};
  info.sender_tag ^= tag_key_;
  return info;
}

std::optional<ucp_tag_recv_info_t> Engine::probe(std::span<const int> peers, ucp_tag_t tag, ucp_tag_t mask) {
  const std::size_t places = peers.size() + 1;  // the last is UCX
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t place = (first_probed_ + i) % places;
    std::optional<ucp_tag_recv_info_t> found;
    if (place == peers.size()) {
      found = probe_ucx(peers, tag, mask);
    } else if (const auto peer = static_cast<std::uint32_t>(peers[place]); mailboxes_.reaches(peer)) {
      found = mailboxes_.probe(peer, tag, mask);
    } else if (is_encrypted(peer)) {
      found = encrypted_->probe(peer, tag, mask);
    }
    if (!found) continue;
    first_probed_ = place + 1;
    return found;
  }
  return {};
}

}  // namespace waywiser
