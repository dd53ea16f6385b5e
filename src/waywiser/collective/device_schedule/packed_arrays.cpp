#include "waywiser/collective/device_schedule/packed_arrays.hpp"

#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds packing_patience = 60;

constexpr Bytes in_packed(Bytes bytes) { return (bytes + 255) / 256 * 256; }

Bytes packed_bytes(const ArrayPart& part) { return in_packed(part.count * bytes_of(part.type)); }

void copy_runs(const ArrayPart& part, std::byte* apart, std::byte* packed, bool packs) {
  const std::size_t size = bytes_of(part.type), bytes = part.layout.run * size;
  for (std::size_t run = 0; run < part.layout.runs(); ++run, packed += bytes) {
    std::byte* there = apart + (part.offset + part.layout.run_at(run)) * size;
    std::memcpy(packs ? packed : there, packs ? there : packed, bytes);
  }
}

}  // namespace

PackedArrays::PackedArrays(Platform* platform, std::span<const ArrayExchange> neighbors,
                           std::span<const Elements> arrays)
    : platform_(platform) {
  const auto part = [&](std::size_t i) -> const ArrayPart& {
    return i % 2 == 0 ? neighbors[i / 2].give : neighbors[i / 2].take;
  };
  Bytes of_host = 0, of_gpu = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!part(i).apart) continue;
    const Place place = arrays[i].region.place;
    (place.is_gpu() ? of_gpu : of_host) += packed_bytes(part(i));
    if (place.is_gpu()) gpu_ = place;
  }
  host_memory_.resize(of_host);
  if (of_gpu != 0) {
    stream_ = platform->open_stream(gpu_);
    gpu_memory_ = platform->allocate(gpu_, of_gpu, Allocation::gpu);
  }
  std::vector<Copy> gives, takes;
  Bytes host_at = 0, gpu_at = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ArrayPart& each = part(i);
    const Bytes bytes = each.count * bytes_of(each.type);
    if (!each.apart) {
      packed_.push_back(arrays[i].slice(each.offset, each.count));
    } else if (arrays[i].region.place.is_gpu()) {
      packed_.emplace_back(gpu_memory_.region().slice(std::exchange(gpu_at, gpu_at + in_packed(bytes)), bytes),
                           each.type);
    } else {
      packed_.emplace_back(
          Region{host_memory_.data() + std::exchange(host_at, host_at + in_packed(bytes)), bytes, host(0)}, each.type);
    }
    if (each.apart) (i % 2 == 0 ? gives : takes).push_back({each, arrays[i], packed_.back()});
  }
  set_up(gives_, gives, true);
  set_up(takes_, takes, false);
}

void PackedArrays::set_up(Direction& direction, const std::vector<Copy>& copies, bool packs) {
  std::vector<Copy> on_gpu;
  for (const Copy& each : copies) (each.apart.region.place.is_gpu() ? on_gpu : direction.on_host).push_back(each);
  if (!on_gpu.empty()) direction.on_gpu = program(on_gpu, packs);
}

// A schedule of this rank alone.
std::unique_ptr<LocalProgram> PackedArrays::program(std::span<const Copy> copies, bool packs) {
  Schedule schedule{packs ? "pack" : "unpack", 0, 1, 0, 0, 0, {}, {}, {}};
  std::vector<Elements> arrays;
  for (const Copy& each : copies) {
    const auto index = static_cast<std::uint32_t>(schedule.arrays.size());
    schedule.arrays.push_back({each.part.type, each.part.array_count, packs ? ArrayUse::given : ArrayUse::taken});
    schedule.arrays.push_back({each.part.type, each.part.count, packs ? ArrayUse::taken : ArrayUse::given});
    arrays.insert(arrays.end(), {each.apart, each.packed});
    schedule.layouts.push_back(each.part.layout);
    const Block apart{Area::array, each.part.offset, each.part.count, index,
                      static_cast<std::uint32_t>(schedule.layouts.size())};
    const Block packed{Area::array, 0, each.part.count, index + 1, 0};
    schedule.steps.push_back(packs ? Step{StepKind::pack, 0, -1, packed, apart}
                                   : Step{StepKind::unpack, 0, -1, apart, packed});
  }
  return std::make_unique<LocalProgram>(*platform_, gpu_, std::move(schedule), arrays, *stream_);
}

void PackedArrays::copy(const Direction& direction) const {
  const bool packs = &direction == &gives_;
  for (const Copy& each : direction.on_host)
    copy_runs(each.part, each.apart.region.data, each.packed.region.data, packs);
  if (!direction.on_gpu) return;
  direction.execution()->enqueue(*stream_, packing_patience);
  stream_->synchronize(Deadline::in(packing_patience));
}

}  // namespace waywiser
