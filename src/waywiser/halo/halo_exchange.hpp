#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/halo/partition.hpp"
#include "waywiser/halo/variant.hpp"

namespace waywiser {

class Group;
class Stream;
struct HaloTuning;

// An array with the values of one field for all cells of a rank, ghosts included.
struct HaloArray {
  Elements values;
  std::size_t components = 1;
  bool planar = false;  // as HaloField has it
};

// A side of the partition that this rank gives.
struct HaloSideUse {
  int peer = 0;
  std::vector<int> face = {};  // as HaloSide has it
  std::size_t cells = 0;
  HaloVariant variant = HaloVariant::packed;
};

// Where a rank's time went, from the beginning of the first start() to the end of the last finish(). What a stream does
// later is not seen.
struct HaloTimes {
  Seconds inside = 0;      // start() and finish()
  Seconds overlapped = 0;  // between them
  Seconds elapsed = 0;     // in all
};

// Fills the ghosts of any number of fields with the neighbours' values, again and again. All ranks make it together,
// with the same fields in the same order, and start it equally often; the group and the arrays must outlive it. At each
// rank all fields are in host memory, or all on one GPU. Between start and finish the fields must not be written, and
// their ghosts must not be read. Several exchanges may be under way at once if their fields differ. Threads: its calls
// are calls of the group. One that was moved from can be assigned to and destroyed; its calls throw invalid_input.
class [[gnu::visibility("default")]] HaloExchange {
 public:
  // Collective. Takes direct where kernels serve it and no two ranks share a GPU, else packed. Throws invalid_input at
  // all ranks: another grid than that of other ranks, partitions or fields that do not match theirs, an array of
  // another size, arrays that overlap.
  HaloExchange(Group& group, HaloPartition partition, std::span<const HaloArray> fields);
  HaloExchange(HaloExchange&& other) noexcept;
  HaloExchange& operator=(HaloExchange&& other) noexcept;
  ~HaloExchange();

  // Begins an exchange; finish() completes it, and must come before the next start. No stream may be using the fields.
  void start();
  // The same behind earlier work of the stream, which must belong to the fields' GPU. A direct variant is only
  // enqueued, so that finish() does not wait, and can be captured. All others wait for the stream on the host; in a
  // stream that is being captured they throw unavailable.
  void start(Stream& stream);
  // Throws like the calls of the group.
  void finish();
  void exchange();
  void exchange(Stream& stream);

  // Collective: other fields from now on. If tune() has chosen the variant, it runs again, with the same time limit
  // and file as before. Throws like the constructor, and then leaves the fields as they were.
  void set_fields(std::span<const HaloArray> fields);

  // mixed: sides() has more.
  HaloVariant variant() const;
  // Collective. Throws at all ranks: unavailable with the reason; invalid_input unless all give one of halo_variants,
  // the same.
  void use(HaloVariant variant);
  // Collective: a variant for each side that this rank gives, in the order of the partition's `gives`; those who take
  // them follow. Throws as above; invalid_input at all ranks for a variant that serves all sides at once beside
  // others: see is_mixable().
  void use(std::span<const HaloVariant> of_sides);
  std::vector<HaloSideUse> sides() const;
  // Collective: exchanges by each variant in turn for `seconds`, and at least once; where time is left, also by mixes
  // that have another variant for one kind of sides. Then uses what is the fastest at its slowest rank. Fills the
  // ghosts, as exchange() does. halo/tuning.hpp has the answer, which lives as long as it is in use.
  const HaloTuning& tune(Seconds seconds);
  // The same with a plan, or a folder of results, whose plan.json is meant; each rank gives its own path.
  // If all ranks' files have the same answer for this shape (partition, fields and their places, types of machine), it
  // is used without measuring, and nothing is exchanged; else the answer is measured and added. Throws at all ranks:
  // invalid_input for a file that cannot be read, io for one that cannot be written.
  const HaloTuning& tune(Seconds seconds, const std::filesystem::path& file);
  // The variant that is used, of each side if they differ, and why.
  std::string explain() const;

  // What exchanges by a variant have done at this rank, those of tune() included.
  HaloCounts counts(HaloVariant variant) const;
  HaloCounts counts() const;  // of all variants
  // Since the variant is in use, without the exchanges of tune().
  HaloTimes times() const;

  // Keeps the owner of the fields while an exchange is under way, even if this object is destroyed first.
  void keep(std::shared_ptr<void> owner);

 private:
  struct State;
  State& held() const;  // throws if this was moved from

  std::unique_ptr<State> state_;
};

}  // namespace waywiser
