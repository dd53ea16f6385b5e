#include <optional>
#include <utility>

#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/halo/gpu_run.hpp"
#include "waywiser/halo/strided_parts.hpp"

namespace waywiser {
namespace {

// A block on the GPU and its place in host memory.
struct BusCopy {
  Region gpu, host;
};

// Rows of a field, and their place in host memory.
struct RowsCopy {
  Region field, host;
  StridedRows rows;
};

constexpr std::size_t most_strided_copies = 4096;  // of one exchange: more take longer than any other variant

// Host memory that messages use, and what is copied to it and back. Outlives the run if a message is under way.
struct BusStaging {
  std::vector<Memory> memory;
  std::vector<BusCopy> out, in;
  std::vector<RowsCopy> rows_out, rows_in;
  std::vector<Elements> arrays;  // of the messages' schedule
};

class StagedRun : public GpuRun {
 public:
  StagedRun(Group& group, HaloVariant variant, const HaloBoundary& boundary, std::vector<Elements> arrays)
      : GpuRun(group, std::move(arrays)) {
    if (variant == HaloVariant::whole_field) {
      schedule_ = halo_schedule(HaloVariant::per_neighbor, boundary);
      schedule_.algorithm = "halo whole_field";
      stage_wholes();
    } else {
      schedule_ = staged_schedule(variant, boundary);
      variant == HaloVariant::strided ? stage_rows(boundary) : stage_boundary(boundary);
    }
  }
  ~StagedRun() override {
    static_cast<void>(failure_of([this] { settle(*stream_); }));
  }

  void prepare() override {
    each_.emplace(schedule_);
    prepared_.emplace(Prepared::of_schedule(group_, schedule_, staging_->arrays));
    prepared_->keep(staging_);
  }

  void start(Stream* stream) override {
    user_ = stream;
    Stream& used = stream != nullptr ? *stream : *stream_;
    if (used.capturing())
      throw Error(ErrorKind::unavailable,
                  std::string(schedule_.algorithm) + " goes through the host, which no graph can capture");
    or_abort([&] {
      if (packing_) packing_->execution().enqueue(used, group_.timeout());
      for (const BusCopy& each : staging_->out) copy(used, each.host, each.gpu);
      for (const RowsCopy& each : staging_->rows_out) {
        gather_rows(used, each.host, each.field, each.rows);
        count_copy(each.host);
      }
      settle(used);
    });
    prepared_->start();
    ++counts_.exchanges;
    counts_.messages += each_->messages;
    counts_.message_bytes += each_->message_bytes;
  }

  void finish() override {
    prepared_->wait();
    Stream& used = user_ != nullptr ? *user_ : *stream_;
    or_abort([&] {
      for (const BusCopy& each : staging_->in) copy(used, each.gpu, each.host);
      for (const RowsCopy& each : staging_->rows_in) {
        scatter_rows(used, each.field, each.rows, each.host);
        count_copy(each.host);
      }
      if (unpacking_) unpacking_->execution().enqueue(used, group_.timeout());
      settle(used);
    });
  }

  // Messages use host memory only, which prepare() keeps.
  void keep(std::shared_ptr<void>) override {}

 private:
  void copy(Stream& stream, Region to, ConstRegion from) {
    stream.copy(to, from);
    count_copy(from);
  }
  void count_copy(ConstRegion bytes) {
    ++counts_.bus_copies;
    counts_.bus_bytes += bytes.bytes;
  }

  Region allocate(Bytes bytes, bool on_gpu) {
    if (bytes == 0) return {};
    const Place place = on_gpu ? gpu_ : platform_.nearest_host(gpu_.index);
    const Region all =
        staging_->memory.emplace_back(platform_.allocate(place, bytes, on_gpu ? Allocation::gpu : Allocation::pinned))
            .region();
    return all.slice(0, bytes);
  }

  void stage_wholes() {
    for (const Elements& field : fields_) {
      const Region mirror = allocate(field.region.bytes, false);
      staging_->arrays.emplace_back(mirror, DataType::uint8);
      if (mirror.bytes == 0) continue;
      staging_->out.push_back({field.region, mirror});
      staging_->in.push_back({field.region, mirror});
    }
  }

  void stage_boundary(const HaloBoundary& boundary) {
    const PackedBoundary places(boundary, true);
    const Region gives = stage(boundary.gives, places.gives, places.give_bytes, places.give_packed, staging_->out);
    const Region takes = stage(boundary.takes, places.takes, places.take_bytes, places.take_packed, staging_->in);
    packing_ = program(packing_schedule(boundary), gives);
    unpacking_ = program(unpacking_schedule(boundary), takes);
  }

  // No packed array on the GPU: the copy engine moves rows of the fields. A kernel copies what the rank gives itself.
  void stage_rows(const HaloBoundary& boundary) {
    const PackedBoundary places(boundary, true);
    stage_rows(boundary.gives, places.gives, places.give_bytes, staging_->rows_out);
    stage_rows(boundary.takes, places.takes, places.take_bytes, staging_->rows_in);
    const std::size_t copies = staging_->rows_out.size() + staging_->rows_in.size();
    if (copies > most_strided_copies)
      throw Error(ErrorKind::unavailable, "the boundary of rank " + std::to_string(boundary.rank) + " takes " +
                                              std::to_string(copies) + " strided copies, more than " +
                                              std::to_string(most_strided_copies));
    packing_ = own_program(boundary);
  }
  void stage_rows(const std::vector<BoundaryPart>& parts, const std::vector<std::size_t>& places, std::size_t bytes,
                  std::vector<RowsCopy>& copies) {
    const Region host = allocate(bytes, false);
    staging_->arrays.emplace_back(host, DataType::uint8);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (places[i] == PackedBoundary::nowhere) continue;
      std::size_t at = places[i];
      for (const StridedRows& rows : strided_copies(parts[i].part)) {
        copies.push_back({fields_[parts[i].field].region, host.slice(at, rows.bytes()), rows});
        at += rows.bytes();
      }
    }
  }

  // The packed array on the GPU; its array on the host is added to those of the messages. The first `packed` bytes are
  // one copy.
  Region stage(const std::vector<BoundaryPart>& parts, const std::vector<std::size_t>& places, std::size_t bytes,
               std::size_t packed, std::vector<BusCopy>& copies) {
    const Region gpu = allocate(bytes, true), host = allocate(bytes, false);
    staging_->arrays.emplace_back(host, DataType::uint8);
    const auto add = [&](std::size_t at, std::size_t count) {
      copies.push_back({gpu.slice(at, count), host.slice(at, count)});
    };
    if (packed != 0) add(0, packed);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (places[i] != PackedBoundary::nowhere && !is_packed(parts[i].variant)) add(places[i], parts[i].part.count);
    return gpu;
  }

  Schedule schedule_;
  const std::shared_ptr<BusStaging> staging_ = std::make_shared<BusStaging>();
  std::unique_ptr<LocalProgram> packing_, unpacking_;  // nullptr: nothing to do
  std::optional<ScheduleCounts> each_;                 // of one start
  std::optional<Prepared> prepared_;
  Stream* user_ = nullptr;
};

}  // namespace

std::unique_ptr<HaloRun> staged_run(Group& group, HaloVariant variant, const HaloBoundary& boundary,
                                    std::vector<Elements> arrays) {
  return std::make_unique<StagedRun>(group, variant, boundary, std::move(arrays));
}

}  // namespace waywiser
