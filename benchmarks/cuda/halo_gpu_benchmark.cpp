// Halo exchanges of two ranks on two GPUs, one process each: faces that are contiguous and faces that lie apart, by
// each variant, beside copies of CUDA to the peer, NCCL with kernels that pack, and NVSHMEM with kernels that pack and
// put (halo_gpu_benchmark_nvshmem, which is built where NVSHMEM is found); then what tune() chooses beside the fastest.
// Every exchange is verified. One JSON object on standard output, a table on standard error. WAYWISER_LIBNCCL names
// NCCL. Usage: halo_gpu_benchmark [virtual] [faces | ALGORITHM | shared PROCESSES on|off]; virtual: small, on virtual
// GPUs, whose times say nothing about GPUs. faces: no tune(). ALGORITHM: the messages of kernels go by this one, and
// nothing else is measured. shared: 1, 2 or 4 processes on each of the two GPUs, peer access on or off; of the 40
// shapes, the share of this setting among the six: what tune() chooses beside the fastest. A candidate may be a kernel
// that waits for another process of its GPU.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "benchmarks/cuda/halo_nvshmem.hpp"
#include "benchmarks/cuda/halo_rows.hpp"
#include "benchmarks/forked_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/base/set_environment.hpp"
#include "waywiser/collective/device_schedule/program_algorithm.hpp"
#include "waywiser/collective/nccl/nccl_library.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/halo/grid.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/halo/tuning.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 30, tuned_for = 0.3, compared_for = 0.3, last_shape_begins = 75;
// Processes that share a GPU run in turns: times differ more, and one that hangs must not use up the time of all.
constexpr Seconds shared_patience = 12, shared_tuned_for = 1, last_shared_begins = 20;
constexpr int ranks = 2, shapes = 40;  // ranks: also GPUs
constexpr double unwritten = -1;

using Cells = std::vector<std::int64_t>;

Cells cells_of(const ArrayPart& part) {
  Cells cells;
  const auto add = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) cells.push_back(static_cast<std::int64_t>(first + i));
  };
  if (!part.apart) add(part.offset, part.count);
  for (std::size_t run = 0; part.apart && run < part.layout.runs(); ++run)
    add(part.offset + part.layout.run_at(run), part.layout.run);
  return cells;
}

Rows rows_of(const Cells& cells) {
  Rows rows;
  const auto count = static_cast<std::int64_t>(cells.size());
  rows.first = cells.front();
  while (rows.run < count && cells[static_cast<std::size_t>(rows.run)] == rows.first + rows.run) ++rows.run;
  rows.rows = count / rows.run;
  rows.pitch = rows.rows == 1 ? rows.run : cells[static_cast<std::size_t>(rows.run)] - rows.first;
  for (std::int64_t i = 0; i < count; ++i)
    if (cells[static_cast<std::size_t>(i)] != rows.first + i / rows.run * rows.pitch + i % rows.run)
      throw Error(ErrorKind::invalid_input, "a face whose rows are not at equal distances");
  return rows;
}

// Processes on each GPU, peer access on or off.
struct Shared {
  static constexpr int settings = 6;
  int processes = 1;  // 1, 2 or 4
  bool peer_access = true;

  int ranks() const { return waywiser::ranks * processes; }
  // Each setting has shapes of all dimensions.
  bool has(int shape) const { return (shape + shape / settings) % settings == processes / 2 + (peer_access ? 0 : 3); }
  // "shared 2 off"
  static std::optional<Shared> of(int count, char** words) {
    if (count != 3 || std::string_view(words[0]) != "shared") return {};
    const std::string_view processes = words[1], peer_access = words[2];
    if ((processes != "1" && processes != "2" && processes != "4") || (peer_access != "on" && peer_access != "off"))
      return {};
    return Shared{processes[0] - '0', peer_access == "on"};
  }
};

struct Statistics {
  double median = 0, least = 0, most = 0;  // us

  static Statistics of(std::vector<double> samples) {
    std::ranges::sort(samples);
    return {samples[samples.size() / 2], samples.front(), samples.back()};
  }
};

// One rank's process.
class Rank {
 public:
  Rank(Group& group, bool on_cuda, std::string algorithm, bool with_nccl)
      : group_(group),
        platform_(*group.platform()),
        on_cuda_(on_cuda),
        algorithm_(std::move(algorithm)),
        place_(gpu(group.rank() % ranks)),
        stream_(platform_.open_stream(place_)),
        begin_(platform_.create_timed_event(place_)),
        end_(platform_.create_timed_event(place_)) {
    if (on_cuda_) check_cuda(cudaSetDevice(place_.index), "cudaSetDevice");
    group_.barrier(Mode::on(*stream_));
    group_.synchronize(*stream_);
    why_no_nccl_ = with_nccl ? why_not([this] { start_nccl(); }) : "not for shared GPUs";
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    if (nccl_ != nullptr) nccl_library().functions().comm_destroy(nccl_);
  }

  // In which stream, for other classes.
  Group& group() { return group_; }
  Platform& platform() { return platform_; }
  Stream& stream() { return *stream_; }
  Place place() const { return place_; }
  bool on_cuda() const { return on_cuda_; }
  const std::string& algorithm() const { return algorithm_; }  // of messages of kernels; empty: the default
  NcclComm nccl() const { return nccl_; }
  const std::string& why_no_nccl() const { return why_no_nccl_; }
  int other() const { return 1 - group_.rank(); }

  double slowest(double value) {
    double all = 0;
    group_.all_reduce(std::span<const double>(&value, 1), std::span(&all, 1), ReduceOp::max);
    return all;
  }
  bool everywhere(bool value) { return slowest(value ? 0 : 1) == 0; }
  // Why `attempt` has failed at a rank; empty: at none.
  template <typename Attempt>
  std::string why_not(Attempt attempt) {
    std::string why;
    try {
      attempt();
    } catch (const Error& error) {
      why = error.what();
    }
    return everywhere(why.empty()) ? "" : why.empty() ? "the other rank has failed" : why;
  }

  // Microseconds at the slowest rank, by events of the stream.
  double time(StreamGraph& graph, int times) {
    group_.barrier();
    group_.barrier(Mode::on(*stream_));
    stream_->record(*begin_);
    graph.launch(*stream_);
    stream_->record(*end_);
    group_.synchronize(*stream_);
    return slowest(end_->since(*begin_) * 1e6 / times);
  }
  // The same by this host's clock, until the stream has ended.
  template <typename Once>
  double time_of_host(Once once, int times) {
    group_.barrier();
    const Seconds start = now_seconds();
    for (int i = 0; i < times; ++i) once();
    group_.synchronize(*stream_);
    return slowest((now_seconds() - start) * 1e6 / times);
  }
  void wait() { stream_->synchronize(Deadline::in(patience)); }
  // Until both ranks are here and their streams have ended.
  void meet() {
    wait();
    group_.barrier();
  }

 private:
  void start_nccl() {
    if (!on_cuda_) throw Error(ErrorKind::unavailable, "virtual GPUs");
    if (!algorithm_.empty()) throw Error(ErrorKind::unavailable, "not for one algorithm");
    const NcclLibrary& library = nccl_library();
    std::string why = library.why_not();
    if (why.empty()) why = open_network_for_nccl(true, false);
    if (!everywhere(why.empty())) throw Error(ErrorKind::unavailable, why.empty() ? "the other rank lacks it" : why);
    NcclUniqueId id;
    if (group_.rank() == 0) library.check(library.functions().get_unique_id(&id), "ncclGetUniqueId");
    group_.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
    library.check(library.functions().comm_init_rank(&nccl_, ranks, id, group_.rank()), "ncclCommInitRank");
  }

  Group& group_;
  Platform& platform_;
  const bool on_cuda_;
  const std::string algorithm_;
  const Place place_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
  NcclComm nccl_ = nullptr;
  std::string why_no_nccl_;
};

// Fields of one type on a part of a grid, whose values are known for each rank, field and cell.
class Fields {
 public:
  // `allocate` gives the memory of an array, at least as much as of the largest rank; else the platform does.
  Fields(Rank& rank, HaloGrid grid, DataType type, int count, const std::function<Region(Bytes)>& allocate = {})
      : rank_(rank), grid_(std::move(grid)), type_(type) {
    const int size = rank_.group().size();
    for (int each = 0; each < size; ++each) partitions_.push_back(grid_partition(grid_, each));
    const Bytes bytes = mine().cells * bytes_of(type_);
    plain_ = rank_.platform().allocate(host(0), bytes, Allocation::pinned);
    for (int i = 0; i < count; ++i) {
      if (!allocate)
        memory_.push_back(rank_.platform().allocate(rank_.place(), std::max<Bytes>(bytes, 16), Allocation::gpu));
      regions_.push_back(allocate ? allocate(most_cells() * bytes_of(type_)) : memory_.back().region());
      arrays_.push_back({Elements(regions_.back().slice(0, bytes), type_), 1, false});
    }
    std::vector<std::size_t> next(partitions_.size());  // by giver
    for (const HaloSide& side : mine().takes) {
      const std::vector<HaloSide>& gives = partition(side.peer).gives;
      std::size_t& index = next[static_cast<std::size_t>(side.peer)];
      while (gives[index].peer != rank_.group().rank()) ++index;
      const Cells from = cells_of(gives[index++].cells), to = cells_of(side.cells);
      for (std::size_t i = 0; i < to.size(); ++i) ghosts_.push_back({side.peer, from[i], to[i]});
    }
  }

  const HaloPartition& mine() const { return partition(rank_.group().rank()); }
  const HaloPartition& partition(int rank) const { return partitions_[static_cast<std::size_t>(rank)]; }
  const std::vector<HaloArray>& arrays() const { return arrays_; }
  Region array(std::size_t field) const { return regions_[field]; }
  const HaloGrid& grid() const { return grid_; }

  // Whether all ghosts are right after `exchange`, which finds none of their values.
  template <typename Exchange>
  bool right_after(Exchange exchange) {
    clear();
    rank_.meet();
    exchange();
    rank_.meet();
    return rank_.everywhere(hold());
  }

 private:
  struct Ghost {
    int giver;
    std::int64_t from, to;
  };

  std::size_t most_cells() const { return std::ranges::max_element(partitions_, {}, &HaloPartition::cells)->cells; }
  static double value(int rank, std::size_t field, std::int64_t cell) {
    const std::uint64_t mixed =
        (static_cast<std::uint64_t>(cell) + 1) * 0x9e3779b97f4a7c15u + field * 0x51ed27u + static_cast<unsigned>(rank);
    return static_cast<double>((mixed ^ mixed >> 31) & 0xfffff);
  }
  template <typename Function>
  void typed(Function f) {
    std::byte* plain = plain_.region().data;
    type_ == DataType::float64 ? f(reinterpret_cast<double*>(plain)) : f(reinterpret_cast<float*>(plain));
  }
  Region plain() const { return plain_.region().slice(0, arrays_.front().values.region.bytes); }

  void clear() {
    for (std::size_t field = 0; field < arrays_.size(); ++field) {
      if (filled_with_ != field)
        typed([&]<typename T>(T* values) {
          for (std::size_t cell = 0; cell < mine().cells; ++cell)
            values[cell] = static_cast<T>(value(rank_.group().rank(), field, static_cast<std::int64_t>(cell)));
        });
      filled_with_ = field;
      typed([&]<typename T>(T* values) {
        for (const Ghost& each : ghosts_) values[each.to] = static_cast<T>(unwritten);
      });
      rank_.stream().copy(arrays_[field].values.region, plain());
      rank_.wait();
    }
  }
  bool hold() {
    bool right = true;
    for (std::size_t field = 0; field < arrays_.size(); ++field) {
      filled_with_ = field;
      rank_.stream().copy(plain(), arrays_[field].values.region);
      rank_.wait();
      typed([&]<typename T>(T* values) {
        for (const Ghost& each : ghosts_)
          right = right && values[each.to] == static_cast<T>(value(each.giver, field, each.from));
      });
    }
    return right;
  }

  Rank& rank_;
  const HaloGrid grid_;
  const DataType type_;
  std::vector<HaloPartition> partitions_;
  Memory plain_;
  std::vector<Memory> memory_;
  std::vector<Region> regions_;
  std::vector<HaloArray> arrays_;
  std::vector<Ghost> ghosts_;
  std::size_t filled_with_ = ~std::size_t{0};  // besides ghosts
};

// One face, or some, by all ways in turn.
class Faces {
 public:
  Faces(Rank& rank, Fields& fields) : rank_(rank), fields_(fields) {
    for (const HaloVariant variant : halo_variants)
      if (rank_.algorithm().empty() || variant == HaloVariant::direct) add_variant(variant);
    if (!rank_.algorithm().empty()) return;
    const std::string why = rank_.on_cuda() ? "" : "virtual GPUs";
    find_rows();
    add(
        "cudaMemcpy2DAsync",
        [this, why] {
          if (!why.empty()) throw Error(ErrorKind::unavailable, why);
          open_peer();
        },
        [this] { copy_to_peer(); });
    add(
        "nccl",
        [this] {
          if (!rank_.why_no_nccl().empty()) throw Error(ErrorKind::unavailable, rank_.why_no_nccl());
          allocate_packed();
        },
        [this] { by_nccl(); });
    add_nvshmem();
  }

  Json run(const std::string& name, const std::string& shape, Bytes bytes, std::optional<double> bar) {
    try {
      Json rows = all_ways(name, shape, bytes, bar);
      release_nvshmem();
      return rows;
    } catch (const Error& error) {
      if (nvshmem_in_use_) {  // its kernels may wait without an end, and a release of memory for them
        std::fprintf(stderr, "halo_gpu_benchmark: rank %d: %s\n", rank_.group().rank(), error.what());
        std::_Exit(1);
      }
      throw;
    }
  }
  bool all_right() const { return all_right_; }

 private:
  struct Way {
    std::string name;
    std::function<void()> once;  // enqueues one exchange
    std::string why, words;
    std::unique_ptr<StreamGraph> graph;
    int times = 1;
    double us = 0;
    std::vector<double> samples;
    Fields* fields = nullptr;  // of its own
    bool is_peer = false;      // what this library is compared with
  };

  Json all_ways(const std::string& name, const std::string& shape, Bytes bytes, std::optional<double> bar) {
    for (Way& way : ways_) calibrate(way);
    for (int round = 0; round < 9; ++round)
      for (Way& way : ways_)
        if (way.why.empty() && (round < 3 || way.us < 5000)) way.samples.push_back(time(way));
    Json rows = Json::array();
    for (Way& way : ways_) {
      const bool right = way.why.empty() && (way.fields != nullptr ? *way.fields : fields_).right_after([&] {
        way.graph ? way.graph->launch(rank_.stream()) : way.once();
      });
      Json row = {{"name", name}, {"shape", shape}, {"bytes_of_a_face", bytes}, {"variant", way.name}};
      if (bar) row["bar_us"] = *bar;
      if (rank_.group().rank() == 0)
        std::fprintf(stderr, "%-12s %-34s %-35s", name.c_str(), shape.c_str(), way.name.c_str());
      if (!way.why.empty()) {
        row["why_unavailable"] = way.why;
        if (rank_.group().rank() == 0) std::fprintf(stderr, " unavailable: %s\n", way.why.c_str());
      } else {
        const Statistics us = Statistics::of(way.samples);
        row["how"] = way.graph ? "graph" : "no graph";
        row["times"] = way.times;
        row["median_us"] = us.median, row["least_us"] = us.least, row["most_us"] = us.most;
        row["verified"] = right;
        if (!way.words.empty()) row["explain"] = way.words;
        all_right_ = all_right_ && right;
        if (rank_.group().rank() == 0)
          std::fprintf(stderr, " %-8s %10.2f us (%.2f to %.2f)%s%s\n", way.graph ? "graph" : "no graph", us.median,
                       us.least, us.most, right ? "" : "  WRONG",
                       bar && way.graph && us.median <= *bar ? "  reaches the bar" : "");
      }
      rows.push_back(std::move(row));
    }
    compare_with_peers(name + ", " + shape);
    return rows;
  }
  // The fastest variant beside the fastest peer.
  void compare_with_peers(const std::string& faces) const {
    const Way *own = nullptr, *peer = nullptr;
    const auto us = [](const Way& way) { return Statistics::of(way.samples).median; };
    for (const Way& way : ways_) {
      const Way*& best = way.is_peer ? peer : own;
      if (way.why.empty() && (best == nullptr || us(way) < us(*best))) best = &way;
    }
    if (rank_.group().rank() == 0 && own != nullptr && peer != nullptr)
      std::fprintf(stderr, "%s: %s takes %.2f of %s\n", faces.c_str(), own->name.c_str(), us(*own) / us(*peer),
                   peer->name.c_str());
  }

  void add(const std::string& name, const std::function<void()>& prepare, std::function<void()> once) {
    ways_.push_back({name, std::move(once), rank_.why_not(prepare), {}, {}, 1, 0, {}});
    ways_.back().is_peer = true;
  }
  void add_variant(HaloVariant variant) {
    const std::string words = rank_.algorithm().empty() ? "" : ", " + rank_.algorithm();
    HaloExchange* halo =
        halos_.emplace_back(std::make_unique<HaloExchange>(rank_.group(), fields_.mine(), fields_.arrays())).get();
    add(
        std::string(waywiser::name(variant)) + words, [&] { halo->use(variant); },
        [this, halo] { halo->exchange(rank_.stream()); });
    ways_.back().words = halo->explain();
    ways_.back().is_peer = false;
  }

  // A graph if it can be captured, of as many exchanges as take some milliseconds.
  void calibrate(Way& way) {
    if (!way.why.empty()) return;
    way.why = rank_.why_not([&] { way.once(); });  // NCCL connects in its first call
    if (!way.why.empty()) return;
    rank_.meet();
    const auto captured = [&] {
      return rank_.why_not([&] {
        way.graph = rank_.stream().capture([&] {
          for (int i = 0; i < way.times; ++i) way.once();
        });
      });
    };
    way.times = 4;
    if (!captured().empty()) way.graph.reset(), way.times = 1;
    rank_.meet();
    time(way);
    way.us = time(way);
    way.times = static_cast<int>(std::clamp(4000 / std::max(way.us, 0.1), 1.0, 100.0));
    if (way.graph) way.why = captured();
    if (!way.why.empty()) return;
    time(way);
  }
  double time(Way& way) {
    return way.graph ? rank_.time(*way.graph, way.times) : rank_.time_of_host(way.once, way.times);
  }

  void find_rows() {
    for (const HaloSide& side : fields_.mine().gives) gives_.push_back(rows_of(cells_of(side.cells)));
    for (const HaloSide& side : fields_.mine().takes) takes_.push_back(rows_of(cells_of(side.cells)));
    for (const HaloSide& side : fields_.partition(rank_.other()).takes) there_.push_back(rows_of(cells_of(side.cells)));
  }

#ifdef WAYWISER_NVSHMEM
  void add_nvshmem() {
    const std::string why = rank_.why_not([&] {
      if (!rank_.on_cuda()) throw Error(ErrorKind::unavailable, "virtual GPUs");
      const std::string failed = start_nvshmem(rank_.group());
      if (!failed.empty()) throw Error(ErrorKind::unavailable, failed);
    });
    const auto prepare = [&] {
      if (!why.empty()) throw Error(ErrorKind::unavailable, why);
      if (nvshmem_) return;
      nvshmem_in_use_ = true;
      std::vector<NvshmemFace> faces;
      for (std::size_t i = 0; i < gives_.size(); ++i) faces.push_back({gives_[i], there_[i], takes_[i]});
      nvshmem_fields_.emplace(rank_, fields_.grid(), DataType::float32, 1, [&](Bytes bytes) {
        nvshmem_.emplace(static_cast<std::int64_t>(bytes / sizeof(float)), faces, rank_.other());
        return Region{reinterpret_cast<std::byte*>(nvshmem_->array()), bytes, rank_.place()};
      });
    };
    for (const bool asks : {false, true})
      for (const int blocks : {8, 32, NvshmemFaces::most_blocks}) {
        if (asks && (!nvshmem_ || !nvshmem_->are_straight())) continue;
        add("nvshmem, " + std::to_string(blocks) + " blocks" + (asks ? ", asks first" : ""), prepare,
            [this, blocks, asks] { nvshmem_->once(rank_.stream().native(), blocks, asks); });
        ways_.back().fields = nvshmem_fields_ ? &*nvshmem_fields_ : nullptr;
      }
  }
  void release_nvshmem() {
    if (nvshmem_) nvshmem_->release();
  }
  std::optional<NvshmemFaces> nvshmem_;
  std::optional<Fields> nvshmem_fields_;
#else
  void add_nvshmem() {}
  void release_nvshmem() {}
#endif

  float* array() const { return reinterpret_cast<float*>(fields_.array(0).data); }
  void open_peer() {
    std::array<SharedRegion, ranks> all;
    const SharedRegion mine = rank_.platform().share(fields_.array(0));
    rank_.group().all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    const SharedRegion& theirs = all[static_cast<std::size_t>(rank_.other())];
    opened_ = rank_.platform().open_shared(theirs, rank_.place());
    peer_ = reinterpret_cast<float*>(opened_.region().data + theirs.offset);
  }
  // The copies alone: nobody is told that they have arrived.
  void copy_to_peer() {
    const auto stream = static_cast<cudaStream_t>(rank_.stream().native());
    for (std::size_t i = 0; i < gives_.size(); ++i) {
      const Rows &from = gives_[i], &to = there_[i];
      const auto wide = [](std::int64_t values) { return static_cast<std::size_t>(values) * sizeof(float); };
      check_cuda(cudaMemcpy2DAsync(peer_ + to.first, wide(to.pitch), array() + from.first, wide(from.pitch),
                                   wide(from.run), static_cast<std::size_t>(from.rows), cudaMemcpyDefault, stream),
                 "cudaMemcpy2DAsync");
    }
  }

  void allocate_packed() {
    const auto bytes = [](const std::vector<Rows>& all) {
      Bytes sum = 16;
      for (const Rows& each : all) sum += static_cast<Bytes>(each.run * each.rows) * sizeof(float);
      return sum;
    };
    out_ = rank_.platform().allocate(rank_.place(), bytes(gives_), Allocation::gpu);
    in_ = rank_.platform().allocate(rank_.place(), bytes(takes_), Allocation::gpu);
  }
  // Contiguous faces without kernels that pack.
  void by_nccl() {
    constexpr int type = 7;  // ncclFloat32
    const NcclLibrary& library = nccl_library();
    const NcclFunctions& call = library.functions();
    void* stream = rank_.stream().native();
    auto *out = reinterpret_cast<float*>(out_.region().data), *in = reinterpret_cast<float*>(in_.region().data);
    const auto values = [](const Rows& rows) { return static_cast<std::size_t>(rows.run * rows.rows); };
    float* at = out;
    for (const Rows& each : gives_)
      if (each.rows > 1) pack_rows(stream, array(), each, std::exchange(at, at + values(each)));
    library.check(call.group_start(), "ncclGroupStart");
    at = out;
    for (const Rows& each : gives_) {
      const float* from = each.rows > 1 ? std::exchange(at, at + values(each)) : array() + each.first;
      library.check(call.send(from, values(each), type, rank_.other(), rank_.nccl(), stream), "ncclSend");
    }
    at = in;
    for (const Rows& each : takes_) {
      float* to = each.rows > 1 ? std::exchange(at, at + values(each)) : array() + each.first;
      library.check(call.receive(to, values(each), type, rank_.other(), rank_.nccl(), stream), "ncclRecv");
    }
    library.check(call.group_end(), "ncclGroupEnd");
    at = in;
    for (const Rows& each : takes_)
      if (each.rows > 1) unpack_rows(stream, array(), each, std::exchange(at, at + values(each)));
  }

  Rank& rank_;
  Fields& fields_;
  std::vector<std::unique_ptr<HaloExchange>> halos_;
  std::vector<Way> ways_;
  std::vector<Rows> gives_, takes_, there_;  // there: what the peer takes
  Memory out_, in_, opened_;
  float* peer_ = nullptr;
  bool all_right_ = true, nvshmem_in_use_ = false;
};

// What tune() chooses, beside all variants.
class Choices {
 public:
  Choices(Rank& rank, Seconds time) : rank_(rank), tuned_for_(time) {}

  // Those `wanted` among the shapes; none begins later than `latest` after `begun`.
  Json run(Seconds begun, Seconds latest, const std::function<bool(int shape)>& wanted) {
    Json rows = Json::array();
    std::vector<double> ratios;
    for (int i = 0; i < shapes; ++i) {
      if (!wanted(i)) continue;
      if (!rank_.everywhere(now_seconds() - begun < latest)) break;
      try {
        rows.push_back(one(i, ratios));
      } catch (const Error& error) {
        throw Error(error.kind(), "at " + shape_of(i).words + ": " + error.what());
      }
    }
    const auto within = static_cast<double>(std::ranges::count_if(ratios, [](double each) { return each <= 1.05; }));
    const double share = within / static_cast<double>(ratios.size()), worst = std::ranges::max(ratios);
    if (rank_.group().rank() == 0)
      std::fprintf(stderr,
                   "tune() is within 5 %% of the fastest for %.0f of %zu shapes; the worst takes %.2f times as long\n",
                   within, ratios.size(), worst);
    return {{"shapes", ratios.size()},
            {"share_within_5_percent", share},
            {"worst_ratio", worst},
            {"rows", std::move(rows)}};
  }
  bool all_right() const { return all_right_; }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<HaloExchange> halo;
    int times = 1;
    std::vector<double> samples;
  };
  struct Shape {
    HaloGrid grid;
    DataType type;
    int fields;
    std::string words;
  };

  Shape shape_of(int i) const {
    constexpr int counts[] = {1, 2, 3, 4, 6, 8};
    constexpr std::int64_t lines[] = {4096, 65536, 262144, 1048576, 16384};
    constexpr std::int64_t sides[] = {128, 1024, 512, 256, 2048};
    constexpr std::int64_t edges[] = {32, 96, 64, 48, 128};
    const auto pick = static_cast<std::size_t>(i / 3 % 5);
    const int dimensions = 1 + i % 3, fields = counts[(i * 5 + i / 6) % 6];
    const std::int64_t width = 1 + (i + i / 4) % 4;
    std::int64_t cells = dimensions == 1 ? lines[pick] : dimensions == 2 ? sides[pick] : edges[pick];
    const DataType type = i / 2 % 2 == 0 ? DataType::float32 : DataType::float64;
    const auto all = [&] {
      std::int64_t product = fields * static_cast<std::int64_t>(bytes_of(type));
      for (int d = 0; d < dimensions; ++d) product *= cells;
      return product;
    };
    while (all() > (rank_.on_cuda() ? std::int64_t{64} << 20 : std::int64_t{1} << 18)) cells /= 2;
    const auto d = static_cast<std::size_t>(dimensions);
    const std::size_t cut = static_cast<std::size_t>(i / 3) % d;
    std::vector<int> parts(d, 1);
    parts[cut] = ranks;
    if (rank_.group().size() > ranks) parts = ranks_per_dimension(Cells(d, cells), rank_.group().size());
    std::vector<bool> periodic(d);
    for (std::size_t each = 0; each < d; ++each) periodic[each] = (i >> each & 1) != 0;
    Cells shape(d, cells);
    std::string words = std::to_string(fields) + " x " + std::string(name(type)) + ", ";
    for (std::size_t each = 0; each < d; ++each) words += (each == 0 ? "" : "x") + std::to_string(cells);
    words += ", width " + std::to_string(width) + ", parts ";
    for (const int each : parts) words += std::to_string(each);
    words += ", periodic ";
    for (std::size_t each = 0; each < d; ++each) words += periodic[each] ? "1" : "0";
    return {even_grid(shape, Cells(d, width), periodic, parts), type, fields, words};
  }

  Json one(int number, std::vector<double>& ratios) {
    const Shape shape = shape_of(number);
    Fields fields(rank_, shape.grid, shape.type, shape.fields);
    std::vector<Entry> entries;
    Json unavailable = Json::object();
    const auto make = [&] { return std::make_unique<HaloExchange>(rank_.group(), fields.mine(), fields.arrays()); };
    auto tuned = make();
    tuned->tune(tuned_for_);
    const std::string chosen(name(tuned->variant()));
    for (const HaloVariant variant : halo_variants) {
      auto halo = make();
      const std::string why = rank_.why_not([&] { halo->use(variant); });
      if (why.empty())
        entries.push_back({std::string(name(variant)), std::move(halo), 1, {}});
      else
        unavailable[std::string(name(variant))] = why;
    }
    // A mix has no name to use; and what the tuned exchange has taken of the receive memory, another may lack.
    if (std::ranges::find(entries, chosen, &Entry::name) == entries.end())
      entries.push_back({chosen, std::move(tuned), 1, {}});
    compare(entries);
    bool right = true;
    for (Entry& each : entries) right = fields.right_after([&] { each.halo->exchange(); }) && right;
    all_right_ = all_right_ && right;
    Json times = Json::object();
    for (const Entry& each : entries) times[each.name] = Statistics::of(each.samples).median;
    const auto median = [](const Entry& each) { return Statistics::of(each.samples).median; };
    const Entry& best = *std::ranges::min_element(entries, {}, median);
    const Entry& taken = *std::ranges::find(entries, chosen, &Entry::name);
    const Statistics best_us = Statistics::of(best.samples), taken_us = Statistics::of(taken.samples);
    const double ratio = taken_us.median / best_us.median;
    ratios.push_back(ratio);
    if (rank_.group().rank() == 0)
      std::fprintf(stderr, "tune() %-54s %-13s %9.2f us, fastest %-13s %9.2f us, %.3f%s\n", shape.words.c_str(),
                   chosen.c_str(), taken_us.median, best.name.c_str(), best_us.median, ratio, right ? "" : "  WRONG");
    return {{"name", "tune"},
            {"shape", shape.words},
            {"chosen", chosen},
            {"chosen_us", taken_us.median},
            {"chosen_least_us", taken_us.least},
            {"chosen_most_us", taken_us.most},
            {"best", best.name},
            {"best_us", best_us.median},
            {"best_least_us", best_us.least},
            {"best_most_us", best_us.most},
            {"ratio", ratio},
            {"verified", right},
            {"all_us", std::move(times)},
            {"unavailable", std::move(unavailable)}};
  }

  double time(Entry& each) {
    return rank_.time_of_host([&] { each.halo->exchange(); }, each.times);
  }
  void compare(std::vector<Entry>& entries) {
    const Seconds begun = now_seconds();
    for (Entry& each : entries) {
      time(each);
      each.times = static_cast<int>(std::clamp(1000 / std::max(time(each), 0.1), 1.0, 100.0));
    }
    for (std::size_t round = 0; round < 25; ++round) {
      for (std::size_t i = 0; i < entries.size(); ++i) {
        Entry& each = entries[(i + round) % entries.size()];
        each.samples.push_back(time(each));
      }
      if (round >= 6 && !rank_.everywhere(now_seconds() - begun < compared_for)) break;
    }
  }

  Rank& rank_;
  const Seconds tuned_for_;
  bool all_right_ = true;
};

// Both ranks; returns the answer and whether all of it is right.
std::pair<Json, bool> measure(Rank& rank, bool faces_alone) {
  const Seconds begun = now_seconds();
  Json rows = Json::array();
  bool right = true;
  const auto faces = [&](const char* name, const std::string& words, const HaloGrid& grid, Bytes bytes,
                         std::optional<double> bar) {
    Fields fields(rank, grid, DataType::float32, 1);
    Faces all(rank, fields);
    for (Json& row : all.run(name, words, bytes, bar)) rows.push_back(std::move(row));
    right = right && all.all_right();
  };
  const std::vector<std::pair<Bytes, double>> bars = {
      {Bytes{64} << 10, 3.5}, {Bytes{1} << 20, 9.5}, {Bytes{16} << 20, 95}};
  for (const auto& [bytes, bar] : bars) {
    const auto width = static_cast<std::int64_t>((rank.on_cuda() ? bytes : bytes / 64) / sizeof(float));
    const std::vector<int> parts = {ranks};
    faces("contiguous", "two faces of " + format_bytes(bytes), even_grid({4 * width}, {width}, {true}, parts), bytes,
          bar);
  }
  const std::int64_t edge = rank.on_cuda() ? 512 : 32;
  const char* names[] = {"z-face", "y-face", "x-face"};
  for (std::size_t cut = 0; cut < 3; ++cut) {
    Cells shape(3, edge), ghost(3, 0);
    std::vector<int> parts(3, 1);
    shape[cut] *= ranks, ghost[cut] = 1, parts[cut] = ranks;
    const std::string words = std::to_string(edge) + "^3 float32 a rank, one face";
    faces(names[cut], words, even_grid(shape, ghost, {false, false, false}, parts),
          static_cast<Bytes>(edge * edge) * sizeof(float), cut == 2 ? std::optional(20.0) : std::nullopt);
  }
  const Seconds faces_took = now_seconds() - begun;
  Choices choices(rank, tuned_for);
  Json tuned = rank.algorithm().empty() && !faces_alone
                   ? choices.run(begun, last_shape_begins, [](int) { return true; })
                   : Json();
  right = right && choices.all_right();
  Json answer = {{"ranks", ranks},
                 {"algorithm", rank.algorithm()},
                 {"backend", std::string(rank.platform().backend())},
                 {"nccl", rank.nccl() != nullptr ? std::to_string(nccl_library().version()) : rank.why_no_nccl()},
                 {"all_verified", right},
                 {"seconds_of_faces", faces_took},
                 {"seconds", now_seconds() - begun},
                 {"faces", std::move(rows)},
                 {"tune", std::move(tuned)}};
  return {std::move(answer), right};
}

std::pair<Json, bool> measure_shared(Rank& rank, const Shared& shared) {
  const Seconds begun = now_seconds();
  rank.group().set_timeout(shared_patience);
  Choices choices(rank, shared_tuned_for);
  Json tuned = choices.run(begun, last_shared_begins, [&](int shape) { return shared.has(shape); });
  return {{{"processes_per_gpu", shared.processes},
           {"peer_access", shared.peer_access},
           {"mps", std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr},
           {"backend", std::string(rank.platform().backend())},
           {"all_verified", choices.all_right()},
           {"seconds", now_seconds() - begun},
           {"tune", std::move(tuned)}},
          choices.all_right()};
}

// By one algorithm alone.
std::shared_ptr<const Chooser> plan_of(const std::string& algorithm) {
  if (algorithm.empty()) return nullptr;
  Plan plan;
  plan.rows = {{{.operation = "prepared_exchange", .memory = "gpu", .ranks = ranks},
                0,
                no_end,
                {{parse_way(algorithm)}},
                {},
                ""}};
  return std::make_shared<const Chooser>(std::move(plan));
}

bool is_algorithm(const std::string& text) {
  try {
    return program_algorithm(parse_way(text)).has_value();
  } catch (const Error&) {
    return false;
  }
}

int run_rank(int rank, const std::string& job, bool on_cuda, const std::string& algorithm, bool faces_alone,
             const std::optional<Shared>& shared) {
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, shared ? shared->ranks() : ranks, job, {}, ""};
  options.kernels_on_shared_gpu = true;
  if (shared) set_environment("WAYWISER_PEER_ACCESS", shared->peer_access ? "on" : "off");
  VirtualMachine machine;
  machine.gpus = ranks;
  options.platform = on_cuda ? open_cuda_platform() : open_virtual_platform(machine);
  options.chooser = plan_of(algorithm);
  Group group = Group::join(options);
  Rank mine(group, on_cuda, algorithm, !shared);
  const auto [answer, right] = shared ? measure_shared(mine, *shared) : measure(mine, faces_alone);
  if (rank == 0) std::printf("%s\n", answer.dump(1).c_str());
  return right ? 0 : 1;
}

}  // namespace
}  // namespace waywiser

int main(int argc, char** argv) {
  const bool on_virtual = argc > 1 && std::strcmp(argv[1], "virtual") == 0;
  const int first = on_virtual ? 2 : 1;
  const auto shared = waywiser::Shared::of(argc - first, argv + first);
  const bool faces_alone = argc > first && std::strcmp(argv[first], "faces") == 0;
  const std::string algorithm = argc > first && !shared && !faces_alone ? argv[first] : "";
  if ((argc > first + 1 && !shared) || (!algorithm.empty() && !waywiser::is_algorithm(algorithm))) {
    std::fputs(
        "usage: halo_gpu_benchmark [virtual] [faces | ALGORITHM | shared 1|2|4 on|off], as "
        "'direct(piece=32K,blocks=64)'\n",
        stderr);
    return 2;
  }
  const std::string job = "halo-benchmark-" + std::to_string(::getpid());
  return waywiser::forked_ranks("halo_gpu_benchmark", shared ? shared->ranks() : waywiser::ranks, [&](int rank) {
    return waywiser::run_rank(rank, job, !on_virtual, algorithm, faces_alone, shared);
  });
}
