#include "waywiser/transport/ucx/rail_parts.hpp"

#include "waywiser/transport/split/split.hpp"

namespace waywiser {

ucs_status_t RailParts::remember(UcxRequest request, std::size_t rail, Bytes bytes) {
  if (UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
  if (request != nullptr) parts_.push_back({request, rail, bytes});
  return UCS_OK;
}

// `post(rail, at, bytes)` begins one part.
template <typename Post>
ucs_status_t RailParts::post(std::size_t rails, const std::vector<int>& percents, Bytes bytes, Post post) {
  if (rails == 1) return remember(post(0, 0, bytes), 0, bytes);
  const std::vector<Bytes> shares = split_bytes(percents, bytes);
  Bytes at = 0;
  for (std::size_t i = 0; i < rails; at += shares[i++]) {
    if (i != 0 && shares[i] == 0) continue;
    const ucs_status_t status = remember(post(i, at, shares[i]), i, shares[i]);
    if (status != UCS_OK) return status;
  }
  return UCS_OK;
}

UcxStatus RailParts::send(std::span<const UcxRail> rails, const std::vector<int>& percents, ConstRegion source,
                          ucp_tag_t tag) {
  receiving_ = false;
  return post(rails.size(), percents, source.bytes, [&](std::size_t i, Bytes at, Bytes bytes) {
    return rails[i].worker->send(*rails[i].endpoint, source.slice(at, bytes), tag);
  });
}

UcxStatus RailParts::receive(std::span<const UcxRail> rails, const std::vector<int>& percents, Region destination,
                             ucp_tag_t tag, ucp_tag_t mask) {
  receiving_ = true;
  return post(rails.size(), percents, destination.bytes, [&](std::size_t i, Bytes at, Bytes bytes) {
    return rails[i].worker->receive(destination.slice(at, bytes), tag, mask);
  });
}

UcxStatus RailParts::flush(std::span<const UcxRail> rails) {
  receiving_ = false;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const ucs_status_t status = remember(rails[i].worker->flush(), i, 0);
    if (status != UCS_OK) return status;
  }
  return UCS_OK;
}

}  // namespace waywiser
