#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "waywiser/device/copy_batch.hpp"
#include "waywiser/group/group_state.hpp"
#include "waywiser/halo/gpu_run.hpp"
#include "waywiser/halo/strided_parts.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_blocks = 4096;  // of one exchange: more take longer than any other variant
constexpr Bytes alignment = 256;

// What each rank tells the others of the memory into which they copy: two halves, which exchanges use in turn.
struct LandingOffer {
  SharedRegion memory;
  Bytes half = 0;
};

std::size_t blocks_of(const std::vector<BoundaryPart>& parts, const std::vector<std::size_t>& places) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (places[i] != PackedBoundary::nowhere) count += parts[i].part.apart ? parts[i].part.layout.runs() : 1;
  return count;
}

// The copy engine moves each block into the landing memory of its neighbour, and from there into the ghosts. That all
// blocks have come is said by messages of the hosts, so that nothing on a GPU waits for another rank. A rank hears from
// all neighbours in each exchange, those too that it only gives to: then they have emptied the half of the exchange
// before, which is the next one's.
class BatchedRun : public GpuRun {
 public:
  BatchedRun(Group& group, const HaloBoundary& boundary, std::vector<Elements> arrays)
      : GpuRun(group, std::move(arrays)),
        boundary_(with_variant(boundary, HaloVariant::batched)),
        places_(boundary_, true),
        each_(staged_schedule(HaloVariant::batched, boundary_)),
        enqueued_(platform_.create_event(gpu_)) {
    if (const auto why = why_no_copy_batches(platform_)) throw Error(ErrorKind::unavailable, *why);
    const std::size_t blocks = blocks_of(boundary_.gives, places_.gives) + blocks_of(boundary_.takes, places_.takes);
    if (blocks > most_blocks)
      throw Error(ErrorKind::unavailable, "the boundary of rank " + std::to_string(boundary.rank) + " has " +
                                              std::to_string(blocks) + " blocks to copy, more than " +
                                              std::to_string(most_blocks));
    own_ = own_program(boundary_);
    mine_.half = (places_.take_bytes + alignment - 1) / alignment * alignment;
    if (mine_.half == 0) return;
    landing_ = platform_.allocate(gpu_, 2 * mine_.half, Allocation::gpu);
    mine_.memory = platform_.share(landing_.region());
  }
  ~BatchedRun() override {
    static_cast<void>(failure_of([this] { settle(*stream_); }));
  }

  void prepare() override {
    const auto ranks = static_cast<std::size_t>(boundary_.ranks);
    std::vector<LandingOffer> offers(ranks);
    group_.all_gather(std::as_bytes(std::span(&mine_, 1)), std::as_writable_bytes(std::span(offers)));
    std::vector<std::uint64_t> here(ranks), there(ranks);  // where the bytes of each rank begin; of this rank at each
    for (std::size_t i = boundary_.takes.size(); i-- > 0;)
      if (const std::size_t at = places_.takes[i]; at != PackedBoundary::nowhere)
        here[static_cast<std::size_t>(boundary_.takes[i].peer)] = at;
    group_.all_to_all(std::span<const std::uint64_t>(here), std::span(there));
    throw_at_all(group_, failure_of([&] {
                   for (const std::size_t half : {0, 1}) {
                     add_gives(half, offers, there);
                     add_takes(half);
                   }
                 }));
    words_ = std::make_shared<std::vector<std::uint8_t>>(ranks + 1);
    const std::span<std::uint8_t> words(*words_);
    const Elements arrays[] = {words.first(1), words.subspan(1)};
    told_.emplace(Prepared::of_schedule(group_, words_to_neighbors(), arrays));
    told_->keep(words_);
  }

  void start(Stream* stream) override {
    if (stream != nullptr && stream->capturing())
      throw Error(ErrorKind::unavailable, "halo batched needs the host, which no graph can capture");
    or_abort([&] {
      if (stream != nullptr) {
        stream->record(*enqueued_);
        stream_->wait(*enqueued_);
      }
      if (own_) own_->execution().enqueue(*stream_, group_.timeout());
      gives_[half_].enqueue(*stream_);
    });
    ++counts_.exchanges;
    counts_.messages += each_.messages;
    counts_.message_bytes += each_.message_bytes;
  }

  void finish() override {
    or_abort([this] { settle(*stream_); });
    told_->start();
    told_->wait();
    or_abort([this] {
      takes_[half_].enqueue(*stream_);
      settle(*stream_);
    });
    half_ = 1 - half_;
  }

  void keep(std::shared_ptr<void> owner) override { owner_ = std::move(owner); }

 private:
  // The blocks of a part, which lies packed at a place of `memory`.
  template <typename Add>
  void for_blocks(const BoundaryPart& part, Region packed, Add add) {
    const Region field = fields_[part.field].region;
    std::size_t at = 0;
    for (const StridedRows& rows : strided_copies(part.part))
      for (std::size_t plane = 0; plane < rows.planes; ++plane)
        for (std::size_t row = 0; row < rows.rows; ++row, at += rows.width)
          add(field.slice(rows.offset + plane * rows.plane_stride + row * rows.row_stride, rows.width),
              packed.slice(at, rows.width));
  }

  void add_gives(std::size_t half, const std::vector<LandingOffer>& offers, const std::vector<std::uint64_t>& there) {
    int peer = -1;
    Region landing;  // this rank's part of the peer's
    std::size_t first = 0;
    for (std::size_t i = 0; i < boundary_.gives.size(); ++i) {
      const BoundaryPart& each = boundary_.gives[i];
      if (places_.gives[i] == PackedBoundary::nowhere) continue;
      if (each.peer != peer) {
        peer = each.peer;
        first = places_.gives[i];
        const LandingOffer& offer = offers[static_cast<std::size_t>(peer)];
        const std::uint64_t begin = there[static_cast<std::size_t>(peer)];
        landing = opened(peer, offer).slice(half * offer.half, offer.half);
        landing = landing.slice(begin, landing.bytes - std::min<Bytes>(begin, landing.bytes));
      }
      for_blocks(each, landing.slice(places_.gives[i] - first, each.part.count),
                 [&](Region field, Region packed) { gives_[half].add(packed, field); });
    }
  }
  void add_takes(std::size_t half) {
    for (std::size_t i = 0; i < boundary_.takes.size(); ++i) {
      if (places_.takes[i] == PackedBoundary::nowhere) continue;
      const BoundaryPart& each = boundary_.takes[i];
      for_blocks(each, landing_.region().slice(half * mine_.half + places_.takes[i], each.part.count),
                 [&](Region field, Region packed) { takes_[half].add(field, packed); });
    }
  }

  // The landing memory of a neighbour. Throws unavailable.
  Region opened(int peer, const LandingOffer& offer) {
    if (opened_.empty()) opened_.resize(static_cast<std::size_t>(boundary_.ranks));
    Memory& memory = opened_[static_cast<std::size_t>(peer)];
    if (!same_machine(group_, peer))
      throw Error(ErrorKind::unavailable, "rank " + std::to_string(peer) + " is on another machine");
    const std::string gpu(offer.memory.identity());
    if (const auto place = platform_.find_gpu(gpu); place && *place != gpu_)
      if (const auto why = platform_.why_no_peer_access(gpu_.index, place->index))
        throw Error(ErrorKind::unavailable, *why);
    try {
      if (!memory) memory = platform_.open_shared(offer.memory, gpu_);
    } catch (const Error& error) {
      throw Error(ErrorKind::unavailable,
                  "the memory of rank " + std::to_string(peer) + " on GPU " + gpu + ": " + error.what());
    }
    return memory.region().slice(offer.memory.offset, offer.memory.bytes);
  }

  // A byte to each rank to which this one gives or from which it takes, and one from each.
  Schedule words_to_neighbors() const {
    std::set<int> neighbors;
    for (const auto* parts : {&boundary_.gives, &boundary_.takes})
      for (const BoundaryPart& each : *parts) neighbors.insert(each.peer);
    neighbors.erase(boundary_.rank);
    const auto ranks = static_cast<std::size_t>(boundary_.ranks);
    Schedule made{"halo batched", boundary_.rank, boundary_.ranks, 0, 0, 0, {}, {}, {}};
    made.arrays = {{DataType::uint8, 1, ArrayUse::given}, {DataType::uint8, ranks, ArrayUse::taken}};
    for (const int peer : neighbors) {
      made.steps.push_back({StepKind::send, 0, peer, {}, {Area::array, 0, 1, 0, 0}});
      made.steps.push_back({StepKind::receive, 0, peer, {Area::array, static_cast<std::size_t>(peer), 1, 1, 0}, {}});
    }
    return made;
  }

  const HaloBoundary boundary_;
  const PackedBoundary places_;
  const ScheduleCounts each_;              // of one start
  const std::unique_ptr<Event> enqueued_;  // earlier work of the caller's stream
  std::unique_ptr<LocalProgram> own_;      // nullptr: nothing to do
  Memory landing_;
  LandingOffer mine_;
  std::vector<Memory> opened_;              // by rank
  std::array<CopyBatch, 2> gives_, takes_;  // by half
  std::size_t half_ = 0;                    // of the exchange under way, or the next one
  std::shared_ptr<std::vector<std::uint8_t>> words_;
  std::optional<Prepared> told_;
  std::shared_ptr<void> owner_;
};

}  // namespace

std::unique_ptr<HaloRun> batched_run(Group& group, const HaloBoundary& boundary, std::vector<Elements> arrays) {
  return std::make_unique<BatchedRun>(group, boundary, std::move(arrays));
}

}  // namespace waywiser
