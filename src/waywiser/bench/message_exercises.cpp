// Between the two ranks of a pair: rank r of the first half and rank r + size / 2 of the second.
#include <optional>
#include <vector>

#include "waywiser/bench/computing.hpp"
#include "waywiser/bench/exercise.hpp"

namespace waywiser {
namespace {

struct Pair {
  bool taking_part = false, first = false;
  int other = 0;
};

Pair pair_of(const Group& group, bool all) {
  const int half = all ? group.size() / 2 : 1;
  if (group.rank() >= 2 * half) return {};
  const bool first = group.rank() < half;
  return {true, first, first ? group.rank() + half : group.rank() - half};
}

class PairExercise : public Exercise {
 public:
  PairExercise(const Bench& bench, const BenchRequest& request, bool all_pairs)
      : Exercise(bench, request),
        pair_(pair_of(bench.group, all_pairs)),
        out_(bench.platform, bench.place(memory(request)), request.bytes),
        in_(bench.platform, bench.place(memory(request)), request.bytes) {
    if (request.output == "exposed") window_.emplace(group_.expose(in_.memory().region()));
  }

  void prepare(std::uint64_t seed) override {
    seed_ = seed;
    out_.fill(0, request_.bytes, seed_of(group_.rank()));
  }
  void check() override {
    if (!receives()) return;
    in_.check(0, request_.bytes, seed_of(pair_.other),
              request_.operation + " of " + std::to_string(request_.bytes) + " bytes from rank " +
                  std::to_string(pair_.other));
  }

 protected:
  bool taking_part() const override { return pair_.taking_part; }
  virtual bool receives() const { return pair_.taking_part; }
  std::uint64_t seed_of(int rank) const { return seed_ + 1000003u * static_cast<std::uint64_t>(rank); }

  const std::string& memory(const BenchRequest& request) const { return pair_.first ? request.input : request.output; }

  const Pair pair_;
  BenchBuffer out_, in_;

 private:
  std::optional<Window> window_;  // of the receive buffer
  std::uint64_t seed_ = 0;
};

class PingPong : public PairExercise {
  using PairExercise::PairExercise;
  void call() override {
    if (pair_.first) group_.send(out_.bytes(), pair_.other, 0, mode());
    group_.recv(in_.bytes(), pair_.other, 0, mode());
    if (!pair_.first) group_.send(out_.bytes(), pair_.other, 0, mode());
  }
};

// A window of messages, then a short answer; both ways at once when `both`.
class Streaming : public PairExercise {
 public:
  Streaming(const Bench& bench, const BenchRequest& request, bool all_pairs, bool both)
      : PairExercise(bench, request, all_pairs),
        both_(both),
        answer_(bench.platform, enqueues() ? bench.place(memory(request)) : host(0), 4) {}

 private:
  void call() override {
    enqueues() ? enqueue_window() : window();
    const int tag = enqueues() ? 0 : answer_tag;
    if (pair_.first)
      group_.recv(answer_.bytes(), pair_.other, tag, mode());
    else
      group_.send(answer_.bytes(), pair_.other, tag, mode());
  }
  void window() {
    under_way_.clear();
    if (both_ || !pair_.first)
      for (int i = 0; i < request_.window; ++i)
        under_way_.push_back(group_.recv(in_.bytes(), pair_.other, 0, Mode::begin));
    if (both_ || pair_.first)
      for (int i = 0; i < request_.window; ++i)
        under_way_.push_back(group_.send(out_.bytes(), pair_.other, 0, Mode::begin));
    for (Future& future : under_way_) future.wait();
  }
  void enqueue_window() {
    for (int i = 0; i < request_.window; ++i) {
      if (both_)
        group_.sendrecv(out_.bytes(), pair_.other, in_.bytes(), pair_.other, 0, mode());
      else if (pair_.first)
        group_.send(out_.bytes(), pair_.other, 0, mode());
      else
        group_.recv(in_.bytes(), pair_.other, 0, mode());
    }
  }
  bool receives() const override { return pair_.taking_part && (both_ || !pair_.first); }

  static constexpr int answer_tag = 1;
  bool both_;
  BenchBuffer answer_;
  std::vector<Future> under_way_;
};

// Both send and receive while they compute, polling now and then.
class Overlap : public PairExercise {
 public:
  Overlap(const Bench& bench, const BenchRequest& request) : PairExercise(bench, request, false) { refuse_streams(); }

 private:
  void call() override {
    Future receiving = group_.recv(in_.bytes(), pair_.other, 0, Mode::begin);
    Future sending = group_.send(out_.bytes(), pair_.other, 0, Mode::begin);
    compute_beside(request_.compute, [&] { return sending.done() && receiving.done(); });
    sending.wait();
    receiving.wait();
  }
};

}  // namespace

std::unique_ptr<Exercise> make_message_exercise(const Bench& bench, const BenchRequest& request) {
  const std::string& name = request.operation;
  if (name == "latency") return std::make_unique<PingPong>(bench, request, false);
  if (name == "multi_latency") return std::make_unique<PingPong>(bench, request, true);
  if (name == "bandwidth" || name == "message_rate") return std::make_unique<Streaming>(bench, request, false, false);
  if (name == "bidirectional") return std::make_unique<Streaming>(bench, request, false, true);
  if (name == "multi_bandwidth") return std::make_unique<Streaming>(bench, request, true, false);
  if (name == "overlap") return std::make_unique<Overlap>(bench, request);
  return nullptr;
}

}  // namespace waywiser
