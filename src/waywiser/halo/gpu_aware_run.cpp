#include <utility>

#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/halo/gpu_run.hpp"

namespace waywiser {
namespace {

// The packed boundary on the GPU, and what is exchanged with each neighbour. Outlives the run if messages are under
// way.
struct PackedOnGpu {
  Memory given, taken;
  std::vector<Exchange> messages;
};

// One kernel packs, the group's messages get the packed GPU memory, and one kernel unpacks: how the bytes travel is the
// road of these messages, so nothing here is staged.
class GpuAwareRun : public GpuRun {
 public:
  GpuAwareRun(Group& group, const HaloBoundary& boundary, std::vector<Elements> arrays)
      : GpuRun(group, std::move(arrays)),
        boundary_(with_variant(boundary, HaloVariant::gpu_aware)),
        each_(staged_schedule(HaloVariant::gpu_aware, boundary_)) {
    const PackedBoundary places(boundary_, true);
    if (places.give_bytes != 0) packed_->given = platform_.allocate(gpu_, places.give_bytes, Allocation::gpu);
    if (places.take_bytes != 0) packed_->taken = platform_.allocate(gpu_, places.take_bytes, Allocation::gpu);
    const Region given = packed_->given.region().slice(0, places.give_bytes);
    const Region taken = packed_->taken.region().slice(0, places.take_bytes);
    packing_ = program(packing_schedule(boundary_), given);
    unpacking_ = program(unpacking_schedule(boundary_), taken);
    for (int peer = 0; peer < boundary_.ranks; ++peer) {
      if (peer == boundary_.rank) continue;
      const Region give = of_peer(peer, boundary_.gives, places.gives, given);
      const Region take = of_peer(peer, boundary_.takes, places.takes, taken);
      if (give.bytes + take.bytes != 0)
        packed_->messages.push_back({peer, {give, DataType::uint8}, {take, DataType::uint8}, 0, 0});
    }
  }
  ~GpuAwareRun() override {
    static_cast<void>(failure_of([this] { settle(*stream_); }));
  }

  void prepare() override {}

  void start(Stream* stream) override {
    user_ = stream;
    if (stream != nullptr && stream->capturing())
      throw Error(ErrorKind::unavailable, "halo gpu_aware needs the host, which no graph can capture");
    or_abort([&] {
      Stream& used = this->used();
      if (packing_) packing_->execution().enqueue(used, group_.timeout());
      settle(used);
    });
    under_way_ = group_.neighbor_exchange(packed_->messages, Mode::begin);
    under_way_.keep(packed_);
    ++counts_.exchanges;
    counts_.messages += each_.messages;
    counts_.message_bytes += each_.message_bytes;
  }

  void finish() override {
    under_way_.wait();
    or_abort([&] {
      Stream& used = this->used();
      if (unpacking_) unpacking_->execution().enqueue(used, group_.timeout());
      settle(used);
    });
  }

  // Messages use packed memory only.
  void keep(std::shared_ptr<void>) override {}

  std::string explain() const override {
    std::string text = "GPU memory is given to messages";
    for (const Exchange& each : packed_->messages) {
      const std::string why = group_.why_staged(each.rank);
      text += "\nwith rank " + std::to_string(each.rank) + ": " +
              (why.empty() ? "by a kernel or a copy engine" : "by the hosts: " + why);
    }
    return text;
  }

 private:
  Stream& used() { return user_ != nullptr ? *user_ : *stream_; }

  // The parts of a neighbour lie one after the other.
  static Region of_peer(int peer, const std::vector<BoundaryPart>& parts, const std::vector<std::size_t>& places,
                        Region packed) {
    std::size_t first = PackedBoundary::nowhere, bytes = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].peer != peer) continue;
      if (bytes == 0) first = places[i];
      bytes += parts[i].part.count;
    }
    return bytes == 0 ? Region{} : packed.slice(first, bytes);
  }

  const HaloBoundary boundary_;
  const ScheduleCounts each_;  // of one start
  const std::shared_ptr<PackedOnGpu> packed_ = std::make_shared<PackedOnGpu>();
  std::unique_ptr<LocalProgram> packing_, unpacking_;  // nullptr: nothing to do
  Future under_way_;
  Stream* user_ = nullptr;
};

}  // namespace

std::unique_ptr<HaloRun> gpu_aware_run(Group& group, const HaloBoundary& boundary, std::vector<Elements> arrays) {
  return std::make_unique<GpuAwareRun>(group, boundary, std::move(arrays));
}

}  // namespace waywiser
