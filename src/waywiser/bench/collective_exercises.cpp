#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "waywiser/bench/computing.hpp"
#include "waywiser/bench/exercise.hpp"
#include "waywiser/group/scans.hpp"

namespace waywiser {
namespace {

constexpr int root = 0;

// `bytes` of the request is what each rank gives; in all_to_all, scatter and reduce_scatter to each rank.
class CollectiveExercise : public Exercise {
 public:
  CollectiveExercise(const Bench& bench, const BenchRequest& request, int blocks_in, int blocks_out)
      : Exercise(bench, request),
        block_(request.bytes),
        in_(bench.platform, bench.place(request.input), block_ * static_cast<Bytes>(blocks_in)),
        out_(bench.platform, bench.place(request.output), block_ * static_cast<Bytes>(blocks_out)) {
    if (request.input == "exposed") windows_.push_back(group_.expose(in_.memory().region()));
    if (request.output == "exposed") windows_.push_back(group_.expose(out_.memory().region()));
  }

  void prepare(std::uint64_t seed) override {
    seed_ = seed;
    fill();
  }
  void check() override {}

 protected:
  virtual void fill() {}
  // The data that rank `from` gives to rank `to`.
  std::uint64_t seed_of(int from, int to = 0) const {
    return seed_ + 1000003u * static_cast<std::uint64_t>(from) + 7919u * static_cast<std::uint64_t>(to);
  }
  std::string what(int from) const {
    return request_.operation + " of " + std::to_string(block_) + " bytes, the data from rank " + std::to_string(from);
  }
  void check_block(int index, int from, int to = 0) {
    out_.check(static_cast<Bytes>(index) * block_, block_, seed_of(from, to), what(from));
  }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  bool at_root() const { return group_.rank() == root; }

  const Bytes block_;
  BenchBuffer in_, out_;
  std::vector<Window> windows_;
  std::uint64_t seed_ = 0;
};

class Barrier : public CollectiveExercise {
 public:
  Barrier(const Bench& bench, const BenchRequest& request) : CollectiveExercise(bench, request, 0, 0) {}
  void call() override { group_.barrier(mode()); }
};

class Broadcast : public CollectiveExercise {
 public:
  Broadcast(const Bench& bench, const BenchRequest& request) : CollectiveExercise(bench, request, 0, 1) {}
  void fill() override { out_.fill(0, block_, seed_of(at_root() ? root : size())); }
  void call() override { group_.broadcast(out_.bytes(), root, mode()); }
  void check() override { check_block(0, root); }
};

// All reductions are sums of float32.
class Reduction : public CollectiveExercise {
 public:
  enum class Kind { reduce, all_reduce, reduce_scatter, scan, exscan, begun_all_reduce };
  Reduction(const Bench& bench, const BenchRequest& request, Kind kind)
      : CollectiveExercise(bench, request, kind == Kind::reduce_scatter ? bench.group.size() : 1, 1), kind_(kind) {
    if (kind == Kind::begun_all_reduce) refuse_streams();
  }

  void fill() override { in_.fill_numbers(in_bytes(), first() + static_cast<unsigned>(rank())); }
  void call() override {
    const Elements in = in_.numbers(in_bytes()), out = out_.numbers(whole(block_));
    const auto sum = ReduceOp::sum;
    if (kind_ == Kind::reduce) group_.reduce(in, at_root() ? out : out_.numbers(0), sum, root, mode());
    if (kind_ == Kind::all_reduce) group_.all_reduce(in, out, sum, mode());
    if (kind_ == Kind::reduce_scatter) group_.reduce_scatter(in, out, sum, mode());
    if (kind_ == Kind::scan) scan(group_, in, out, sum, mode());
    if (kind_ == Kind::exscan) exscan(group_, in, rank() == 0 ? out_.numbers(0) : out, sum, mode());
    if (kind_ != Kind::begun_all_reduce) return;
    Future future = group_.all_reduce(in, out, sum, Mode::begin);
    compute_beside(request_.compute, [&] { return future.done(); });
    future.wait();
  }
  void check() override {
    if ((kind_ == Kind::reduce && !at_root()) || (kind_ == Kind::exscan && rank() == 0)) return;
    const std::size_t offset =
        kind_ == Kind::reduce_scatter ? static_cast<std::size_t>(rank()) * (whole(block_) / sizeof(float)) : 0;
    out_.check_sums(whole(block_), first(), summed(), offset, request_.operation);
  }

 private:
  static Bytes whole(Bytes bytes) { return bytes / sizeof(float) * sizeof(float); }
  Bytes in_bytes() const { return whole(block_) * (kind_ == Kind::reduce_scatter ? static_cast<Bytes>(size()) : 1); }
  std::uint64_t first() const { return seed_ & 0xffff; }
  int summed() const { return kind_ == Kind::scan ? rank() + 1 : kind_ == Kind::exscan ? rank() : size(); }
  Kind kind_;
};

class AllGather : public CollectiveExercise {
 public:
  AllGather(const Bench& bench, const BenchRequest& request)
      : CollectiveExercise(bench, request, 1, bench.group.size()) {}
  void fill() override { in_.fill(0, block_, seed_of(rank())); }
  void call() override { group_.all_gather(in_.bytes(), out_.bytes(), mode()); }
  void check() override {
    for (int from = 0; from < size(); ++from) check_block(from, from);
  }
};

class AllToAll : public CollectiveExercise {
 public:
  AllToAll(const Bench& bench, const BenchRequest& request)
      : CollectiveExercise(bench, request, bench.group.size(), bench.group.size()) {}
  void fill() override {
    for (int to = 0; to < size(); ++to) in_.fill(static_cast<Bytes>(to) * block_, block_, seed_of(rank(), to));
  }
  void call() override { group_.all_to_all(in_.bytes(), out_.bytes(), mode()); }
  void check() override {
    for (int from = 0; from < size(); ++from) check_block(from, from, rank());
  }
};

class Gather : public CollectiveExercise {
 public:
  Gather(const Bench& bench, const BenchRequest& request)
      : CollectiveExercise(bench, request, 1, bench.group.rank() == root ? bench.group.size() : 0) {}
  void fill() override { in_.fill(0, block_, seed_of(rank())); }
  void call() override { group_.gather(in_.bytes(), out_.bytes(), root, mode()); }
  void check() override {
    for (int from = 0; at_root() && from < size(); ++from) check_block(from, from);
  }
};

class Scatter : public CollectiveExercise {
 public:
  Scatter(const Bench& bench, const BenchRequest& request)
      : CollectiveExercise(bench, request, bench.group.rank() == root ? bench.group.size() : 0, 1) {}
  void fill() override {
    for (int to = 0; at_root() && to < size(); ++to)
      in_.fill(static_cast<Bytes>(to) * block_, block_, seed_of(root, to));
  }
  void call() override { group_.scatter(in_.bytes(), out_.bytes(), root, mode()); }
  void check() override { check_block(0, root, rank()); }
};

// A ring: with both neighbours at the same time.
class NeighborExchange : public CollectiveExercise {
 public:
  NeighborExchange(const Bench& bench, const BenchRequest& request) : CollectiveExercise(bench, request, 2, 2) {}
  void fill() override {
    for (int side = 0; side < 2; ++side) in_.fill(static_cast<Bytes>(side) * block_, block_, seed_of(rank(), side));
  }
  void call() override { group_.neighbor_exchange(neighbors(), mode()); }
  void check() override {
    check_block(0, before(), 1);
    check_block(1, after(), 0);
  }

 protected:
  std::array<Exchange, 2> neighbors() const {
    return {{{after(), part(in_, 1), part(out_, 1), 1, 0}, {before(), part(in_, 0), part(out_, 0), 0, 1}}};
  }

 private:
  Elements part(const BenchBuffer& buffer, int side) const {
    return buffer.bytes(static_cast<Bytes>(side) * block_, block_);
  }
  int after() const { return (rank() + 1) % size(); }
  int before() const { return (rank() + size() - 1) % size(); }
};

// The same, prepared once, by the algorithm set for the first slice.
class PreparedExchange : public NeighborExchange {
 public:
  using NeighborExchange::NeighborExchange;
  void fill() override {
    NeighborExchange::fill();
    if (!prepared_) prepared_.emplace(group_.prepare_exchange(neighbors()));
  }
  void call() override {
    if (stream() != nullptr) return prepared_->start(*stream());
    prepared_->start();
    prepared_->wait();
  }

 private:
  std::optional<Prepared> prepared_;
};

}  // namespace

std::unique_ptr<Exercise> make_collective_exercise(const Bench& bench, const BenchRequest& request) {
  const std::string& name = request.operation;
  using Kind = Reduction::Kind;
  if (name == "barrier") return std::make_unique<Barrier>(bench, request);
  if (name == "broadcast") return std::make_unique<Broadcast>(bench, request);
  if (name == "reduce") return std::make_unique<Reduction>(bench, request, Kind::reduce);
  if (name == "all_reduce") return std::make_unique<Reduction>(bench, request, Kind::all_reduce);
  if (name == "reduce_scatter") return std::make_unique<Reduction>(bench, request, Kind::reduce_scatter);
  if (name == "scan") return std::make_unique<Reduction>(bench, request, Kind::scan);
  if (name == "exscan") return std::make_unique<Reduction>(bench, request, Kind::exscan);
  if (name == "overlap_all_reduce") return std::make_unique<Reduction>(bench, request, Kind::begun_all_reduce);
  if (name == "all_gather") return std::make_unique<AllGather>(bench, request);
  if (name == "all_to_all") return std::make_unique<AllToAll>(bench, request);
  if (name == "gather") return std::make_unique<Gather>(bench, request);
  if (name == "scatter") return std::make_unique<Scatter>(bench, request);
  if (name == "neighbor_exchange") return std::make_unique<NeighborExchange>(bench, request);
  if (name == "prepared_exchange") return std::make_unique<PreparedExchange>(bench, request);
  return nullptr;
}

}  // namespace waywiser
