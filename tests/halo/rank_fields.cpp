#include "tests/halo/rank_fields.hpp"

#include <cstring>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {
namespace {

constexpr Seconds fields_patience = 20;

}  // namespace

RankFields::RankFields(Group& group, const MadeUpDomain& domain, bool on_gpu)
    : domain_(domain), rank_(group.rank()), on_gpu_(on_gpu) {
  const auto in_lines = [](Bytes bytes) { return (bytes + 15) / 16 * 16 + 16; };
  Bytes all = 16;
  for (std::size_t i = 0; i < domain.fields.size(); ++i) all += in_lines(domain.bytes(rank_, i));
  if (on_gpu) {
    const Place gpu = gpu_of_rank(group);
    memory_ = group.platform()->allocate(gpu, all, Allocation::gpu);
    pinned_ = group.platform()->allocate(host(0), all, Allocation::pinned);
    stream_ = group.platform()->open_stream(gpu);
  }
  Bytes at = 0;
  for (std::size_t i = 0; i < domain.fields.size(); ++i) {
    const Bytes bytes = domain.bytes(rank_, i);
    plain_.emplace_back(bytes);
    const Region region = on_gpu ? memory_.region().slice(at, bytes) : Region{plain_.back().data(), bytes, host(0)};
    arrays_.push_back({Elements(region, domain.fields[i].type), domain.fields[i].components, domain.fields[i].planar});
    at += in_lines(bytes);
  }
}

void RankFields::move(std::size_t field, std::vector<std::byte>& values, bool write) {
  const Region region = arrays_[field].values.region;
  if (region.bytes == 0) return;
  std::byte* plain = on_gpu_ ? pinned_.region().data : region.data;
  if (write) std::memcpy(plain, values.data(), values.size());
  if (on_gpu_) {
    const Region pinned = pinned_.region().slice(0, region.bytes);
    write ? stream_->copy(region, pinned) : stream_->copy(pinned, region);
    stream_->synchronize(Deadline::in(fields_patience));
  }
  if (!write) std::memcpy(values.data(), plain, values.size());
}

void RankFields::fill(int start) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    std::vector<std::byte> values = domain_.before(rank_, i, start);
    move(i, values, true);
  }
}

void RankFields::require_exchanged(int start) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    std::vector<std::byte> seen(domain_.bytes(rank_, i));
    move(i, seen, false);
    require_that(seen == domain_.after(rank_, i, start),
                 "field " + std::to_string(i) + " after exchange " + std::to_string(start));
  }
}

void RankFields::require_replays(Group& group, StreamGraph& exchange) {
  for (int start = 0; start < 5; ++start) {
    fill(start);
    exchange.launch(*stream_);
    group.synchronize(*stream_);
    require_exchanged(start);
  }
}

bool direct_is_available(HaloExchange& exchange) {
  try {
    exchange.use(HaloVariant::direct);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    return false;
  }
}

}  // namespace waywiser
