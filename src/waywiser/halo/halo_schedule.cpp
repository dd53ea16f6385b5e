#include "waywiser/halo/halo_schedule.hpp"

#include <algorithm>
#include <utility>

namespace waywiser {
namespace {

constexpr std::uint32_t packs = 0, moves = 1, unpacks = 2;  // rounds

// Collects the arrays and steps of one rank's schedule.
class HaloScheduleMaker {
 public:
  HaloScheduleMaker(std::string_view name, const HaloBoundary& boundary)
      : boundary_(boundary), packed_(boundary), made_{name, boundary.rank, boundary.ranks, 0, 0, 0, {}, {}, {}} {}

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
    for_others(boundary_.gives, packed_.gives, [&](const BoundaryPart& each, std::size_t at) {
      add({StepKind::pack, packs, -1, {Area::array, at, each.part.count, packed, 0}, apart(each)});
    });
  }
  void unpack(std::uint32_t packed) {
    for_others(boundary_.takes, packed_.takes, [&](const BoundaryPart& each, std::size_t at) {
      add({StepKind::unpack, unpacks, -1, apart(each), {Area::array, at, each.part.count, packed, 0}});
    });
  }

  // Each part by itself. Ordered by distance, so that not all ranks send to the same rank at once.
  void move_parts(std::uint32_t round, std::uint32_t first) {
    by_distance(
        [&](int to) {
          for (const BoundaryPart& each : boundary_.gives)
            if (each.peer == to) add({StepKind::send, round, to, {}, apart(each, first)});
        },
        [&](int from) {
          for (const BoundaryPart& each : boundary_.takes)
            if (each.peer == from) add({StepKind::receive, round, from, apart(each, first), {}});
        });
  }
  // From the packed array `out` into `in`; `together`: all parts of a neighbour as one.
  void move_packed(std::uint32_t out, std::uint32_t in, bool together) {
    by_distance(
        [&](int to) {
          for (const Block& each : packed_with(to, boundary_.gives, packed_.gives, out, together))
            add({StepKind::send, moves, to, {}, each});
        },
        [&](int from) {
          for (const Block& each : packed_with(from, boundary_.takes, packed_.takes, in, together))
            add({StepKind::receive, moves, from, each, {}});
        });
  }

  Schedule finish() {
    std::ranges::stable_sort(made_.steps, {}, &Step::round);
    return std::move(made_);
  }

 private:
  void add(const Step& step) { made_.steps.push_back(step); }

  template <typename Send, typename Receive>
  void by_distance(Send send, Receive receive) {
    for (int distance = 1; distance < boundary_.ranks; ++distance) {
      send((boundary_.rank + distance) % boundary_.ranks);
      receive((boundary_.rank + boundary_.ranks - distance) % boundary_.ranks);
    }
  }
  template <typename Function>
  void for_others(const std::vector<BoundaryPart>& parts, const std::vector<std::size_t>& places, Function f) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].peer != boundary_.rank) f(parts[i], places[i]);
  }
  std::vector<Block> packed_with(int peer, const std::vector<BoundaryPart>& parts,
                                 const std::vector<std::size_t>& places, std::uint32_t array, bool together) {
    std::vector<Block> blocks;
    for_others(parts, places, [&](const BoundaryPart& each, std::size_t at) {
      if (each.peer != peer) return;
      if (together && !blocks.empty())
        blocks.back().count += each.part.count;
      else
        blocks.push_back({Area::array, at, each.part.count, array, 0});
    });
    return blocks;
  }

  const HaloBoundary& boundary_;
  const PackedBoundary packed_;
  Schedule made_;
};

Schedule whole_field(const HaloBoundary& boundary) {
  HaloScheduleMaker maker("halo whole_field", boundary);
  const std::uint32_t fields = maker.add_fields(ArrayUse::taken), copies = maker.add_fields(ArrayUse::scratch);
  maker.copy_wholes(packs, fields, copies);
  maker.copy_own(moves, copies);
  maker.move_parts(moves, copies);
  maker.copy_wholes(unpacks, copies, fields);
  return maker.finish();
}

Schedule part_by_part(std::string_view name, const HaloBoundary& boundary) {
  HaloScheduleMaker maker(name, boundary);
  const std::uint32_t fields = maker.add_fields(ArrayUse::taken);
  maker.copy_own(packs, fields);
  maker.move_parts(packs, fields);
  return maker.finish();
}

Schedule packed_by_neighbor(std::string_view name, const HaloBoundary& boundary) {
  HaloScheduleMaker maker(name, boundary);
  maker.add_fields(ArrayUse::taken);
  const std::uint32_t out = maker.add_packed(true, ArrayUse::scratch), in = maker.add_packed(false, ArrayUse::scratch);
  maker.copy_own(packs);
  maker.pack(out);
  maker.move_packed(out, in, true);
  maker.unpack(in);
  return maker.finish();
}

}  // namespace

Schedule halo_schedule(HaloVariant variant, const HaloBoundary& boundary) {
  switch (variant) {
    case HaloVariant::whole_field: return whole_field(boundary);
    case HaloVariant::per_neighbor: return part_by_part("halo per_neighbor", boundary);
    case HaloVariant::packed: return packed_by_neighbor("halo packed", boundary);
    case HaloVariant::direct: return part_by_part("halo direct", boundary);
    case HaloVariant::direct_packed: return packed_by_neighbor("halo direct_packed", boundary);
  }
  return {};
}

Schedule staged_schedule(HaloVariant variant, const HaloBoundary& boundary) {
  HaloScheduleMaker maker(variant == HaloVariant::packed ? "halo packed" : "halo per_neighbor", boundary);
  const std::uint32_t out = maker.add_packed(true, ArrayUse::given), in = maker.add_packed(false, ArrayUse::taken);
  maker.move_packed(out, in, variant == HaloVariant::packed);
  return maker.finish();
}

Schedule packing_schedule(const HaloBoundary& boundary) {
  HaloScheduleMaker maker("halo pack", boundary);
  maker.add_fields(ArrayUse::taken);
  maker.pack(maker.add_packed(true, ArrayUse::taken));
  maker.copy_own(packs);
  Schedule made = maker.finish();
  made.rank = 0, made.ranks = 1;
  return made;
}

Schedule unpacking_schedule(const HaloBoundary& boundary) {
  HaloScheduleMaker maker("halo unpack", boundary);
  maker.add_fields(ArrayUse::taken);
  maker.unpack(maker.add_packed(false, ArrayUse::given));
  Schedule made = maker.finish();
  made.rank = 0, made.ranks = 1;
  return made;
}

}  // namespace waywiser
