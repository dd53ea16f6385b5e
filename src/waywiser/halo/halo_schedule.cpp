#include "waywiser/halo/halo_schedule.hpp"

#include <algorithm>
#include <utility>

namespace waywiser {
namespace {

constexpr std::uint32_t packs = 0, moves = 1, unpacks = 2;  // rounds

// Collects the arrays and steps of one rank's schedule.
class HaloScheduleMaker {
 public:
  // `all`: all parts have a place in packed arrays, not only those of packed variants.
  HaloScheduleMaker(std::string_view name, const HaloBoundary& boundary, bool all)
      : boundary_(boundary), packed_(boundary, all), made_{name, boundary.rank, boundary.ranks, 0, 0, 0, {}, {}, {}} {}

  bool packs_any() const { return packed_.give_packed + packed_.take_packed != 0; }

  // Returns the first one's index.
  std::uint32_t add_fields(ArrayUse use) {
    const auto first = static_cast<std::uint32_t>(made_.arrays.size());
    for (const std::size_t bytes : boundary_.field_bytes) add_array(bytes, use);
    return first;
  }
  std::uint32_t add_array(std::size_t bytes, ArrayUse use) {
    made_.arrays.push_back({DataType::uint8, bytes, use});
    return static_cast<std::uint32_t>(made_.arrays.size() - 1);
  }
  std::uint32_t add_packed(bool given, ArrayUse use) {
    return add_array(given ? packed_.give_bytes : packed_.take_bytes, use);
  }

  // The part in its field's array, or in a copy of all fields that begins at array `first`.
  Block apart(const BoundaryPart& each, std::uint32_t first = 0) {
    Block block{Area::array, each.part.offset, each.part.count, first + each.field, 0};
    if (!each.part.apart) return block;
    made_.layouts.push_back(each.part.layout);
    block.layout = static_cast<std::uint32_t>(made_.layouts.size());
    return block;
  }

  void copy_wholes(std::uint32_t round, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = 0; i < boundary_.field_bytes.size(); ++i)
      if (const std::size_t bytes = boundary_.field_bytes[i]; bytes != 0)
        add({StepKind::copy, round, -1, {Area::array, 0, bytes, to + i, 0}, {Area::array, 0, bytes, from + i, 0}});
  }
  // What this rank gives itself, between fields that begin at array `first`.
  void copy_own(std::uint32_t round, std::uint32_t first = 0) {
    auto taken = boundary_.takes.begin();
    const auto is_own = [this](const BoundaryPart& part) { return part.peer == boundary_.rank; };
    for (const BoundaryPart& each : boundary_.gives) {
      if (!is_own(each)) continue;
      taken = std::find_if(taken, boundary_.takes.end(), is_own);
      const Block to = apart(*taken++, first);
      add({StepKind::copy, round, -1, to, apart(each, first)});
    }
  }
  void pack(std::uint32_t packed) {
    for_placed(boundary_.gives, packed_.gives, [&](const BoundaryPart& each, std::size_t at) {
      add({StepKind::pack, packs, -1, {Area::array, at, each.part.count, packed, 0}, apart(each)});
    });
  }
  void unpack(std::uint32_t packed) {
    for_placed(boundary_.takes, packed_.takes, [&](const BoundaryPart& each, std::size_t at) {
      add({StepKind::unpack, unpacks, -1, apart(each), {Area::array, at, each.part.count, packed, 0}});
    });
  }

  // The messages: to each neighbour its packed parts as one, then the others. Ordered by distance, so that not all
  // ranks send to the same rank at once. `out`, `in`: packed arrays; `first`: where parts without a place there lie.
  void move(std::uint32_t round, std::uint32_t out, std::uint32_t in, std::uint32_t first) {
    for (int distance = 1; distance < boundary_.ranks; ++distance) {
      const int to = (boundary_.rank + distance) % boundary_.ranks,
                from = (boundary_.rank + boundary_.ranks - distance) % boundary_.ranks;
      for (const Block& each : blocks_of(to, boundary_.gives, packed_.gives, out, first))
        add({StepKind::send, round, to, {}, each});
      for (const Block& each : blocks_of(from, boundary_.takes, packed_.takes, in, first))
        add({StepKind::receive, round, from, each, {}});
    }
  }

  Schedule finish() {
    std::ranges::stable_sort(made_.steps, {}, &Step::round);
    return std::move(made_);
  }

 private:
  void add(const Step& step) { made_.steps.push_back(step); }

  template <typename Function>
  void for_placed(const std::vector<BoundaryPart>& parts, const std::vector<std::size_t>& places, Function f) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (places[i] != PackedBoundary::nowhere) f(parts[i], places[i]);
  }
  std::vector<Block> blocks_of(int peer, const std::vector<BoundaryPart>& parts, const std::vector<std::size_t>& places,
                               std::uint32_t array, std::uint32_t first) {
    std::vector<Block> blocks;
    for (const bool together : {true, false})
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].peer != peer || is_packed(parts[i].variant) != together) continue;
        if (places[i] == PackedBoundary::nowhere)
          blocks.push_back(apart(parts[i], first));
        else if (together && !blocks.empty())
          blocks.back().count += parts[i].part.count;
        else
          blocks.push_back({Area::array, places[i], parts[i].part.count, array, 0});
      }
    return blocks;
  }

  const HaloBoundary& boundary_;
  const PackedBoundary packed_;
  Schedule made_;
};

std::string_view schedule_name(HaloVariant variant) {
  switch (variant) {
    case HaloVariant::whole_field: return "halo whole_field";
    case HaloVariant::per_neighbor: return "halo per_neighbor";
    case HaloVariant::packed: return "halo packed";
    case HaloVariant::direct: return "halo direct";
    case HaloVariant::strided: return "halo strided";
    case HaloVariant::gpu_aware: return "halo gpu_aware";
    case HaloVariant::mixed: return "halo mixed";
  }
  return "";
}

Schedule whole_fields(const HaloBoundary& boundary) {
  HaloScheduleMaker maker(schedule_name(HaloVariant::whole_field), boundary, false);
  const std::uint32_t fields = maker.add_fields(ArrayUse::taken), copies = maker.add_fields(ArrayUse::scratch);
  maker.copy_wholes(packs, fields, copies);
  maker.copy_own(moves, copies);
  maker.move(moves, 0, 0, copies);
  maker.copy_wholes(unpacks, copies, fields);
  return maker.finish();
}

Schedule by_parts(std::string_view name, const HaloBoundary& boundary) {
  HaloScheduleMaker maker(name, boundary, false);
  const std::uint32_t fields = maker.add_fields(ArrayUse::taken);
  maker.copy_own(packs, fields);
  if (!maker.packs_any()) {
    maker.move(packs, 0, 0, fields);
    return maker.finish();
  }
  const std::uint32_t out = maker.add_packed(true, ArrayUse::scratch), in = maker.add_packed(false, ArrayUse::scratch);
  maker.pack(out);
  maker.move(moves, out, in, fields);
  maker.unpack(in);
  return maker.finish();
}

Schedule staged(std::string_view name, const HaloBoundary& boundary) {
  HaloScheduleMaker maker(name, boundary, true);
  const std::uint32_t out = maker.add_packed(true, ArrayUse::given), in = maker.add_packed(false, ArrayUse::taken);
  maker.move(moves, out, in, 0);
  return maker.finish();
}

}  // namespace

Schedule halo_schedule(HaloVariant variant, const HaloBoundary& boundary) {
  if (variant == HaloVariant::mixed) return by_parts(schedule_name(variant), boundary);
  const HaloBoundary same = with_variant(boundary, variant);
  return variant == HaloVariant::whole_field ? whole_fields(same) : by_parts(schedule_name(variant), same);
}

Schedule staged_schedule(HaloVariant variant, const HaloBoundary& boundary) {
  if (variant == HaloVariant::mixed) return staged(schedule_name(variant), boundary);
  return staged(schedule_name(variant), with_variant(boundary, variant));
}

Schedule packing_schedule(const HaloBoundary& boundary) {
  HaloScheduleMaker maker("halo pack", boundary, true);
  maker.add_fields(ArrayUse::taken);
  maker.pack(maker.add_packed(true, ArrayUse::taken));
  maker.copy_own(packs);
  Schedule made = maker.finish();
  made.rank = 0, made.ranks = 1;
  return made;
}

Schedule unpacking_schedule(const HaloBoundary& boundary) {
  HaloScheduleMaker maker("halo unpack", boundary, true);
  maker.add_fields(ArrayUse::taken);
  maker.unpack(maker.add_packed(false, ArrayUse::given));
  Schedule made = maker.finish();
  made.rank = 0, made.ranks = 1;
  return made;
}

}  // namespace waywiser
