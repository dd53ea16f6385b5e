#pragma once

#include <memory>
#include <span>
#include <string>

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

// Fills the ghosts of any number of fields with the neighbours' values, again and again. All ranks make it together,
// with the same fields in the same order, and start it equally often; the group and the arrays must outlive it. At each
// rank all fields are in host memory, or all on one GPU. Between start and finish the fields must not be written, and
// their ghosts must not be read. Several exchanges may be under way at once if their fields differ.
class [[gnu::visibility("default")]] HaloExchange {
 public:
  // Collective. Takes direct where kernels serve it, else packed. Throws invalid_input at all ranks: partitions or
  // fields that do not match those of other ranks, an array of another size, arrays that overlap.
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

  // Collective: other fields from now on. Throws like the constructor; the fields are then as before.
  void set_fields(std::span<const HaloArray> fields);

  HaloVariant variant() const noexcept;
  // Collective. Throws unavailable at all ranks, with the reason.
  void use(HaloVariant variant);
  // Collective: exchanges by each variant in turn for `seconds`, and at least once; then uses the one whose slowest
  // rank is fastest. Fills the ghosts, as exchange() does. halo/tuning.hpp has the answer, which lives as long as it is
  // in use.
  const HaloTuning& tune(Seconds seconds);
  // The variant that is used, and why.
  std::string explain() const;

  // What exchanges by a variant have done at this rank, those of tune() included.
  HaloCounts counts(HaloVariant variant) const;

  // Keeps the owner of the fields while an exchange is under way, even if this object is destroyed first.
  void keep(std::shared_ptr<void> owner);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace waywiser
