// Rank 0 puts into the memory of rank 1 or gets from it; rank 1 waits in the barrier after each sample.
#include "waywiser/base/error.hpp"
#include "waywiser/bench/exercise.hpp"

namespace waywiser {
namespace {

class OneSidedExercise : public Exercise {
 public:
  // The windows of all ranks are in the memory of the output; what rank 0 puts or gets is in that of the input.
  OneSidedExercise(const Bench& bench, const BenchRequest& request, bool put)
      : Exercise(bench, request),
        put_(put),
        mine_(bench.platform, bench.place(request.input), request.bytes),
        exposed_(bench.platform, bench.place(request.output), request.bytes),
        window_(group_.expose(exposed_.memory().region())) {
    refuse_streams();
  }

  void prepare(std::uint64_t seed) override {
    seed_ = seed;
    (put_ ? mine_ : exposed_).fill(0, request_.bytes, seed);
  }
  void run(int calls) override {
    for (int i = 0; i < calls && group_.rank() == 0; ++i) call();
    group_.barrier();  // puts have arrived: flush came before
  }
  void check() override {
    if (group_.rank() == (put_ ? 1 : 0))
      (put_ ? exposed_ : mine_)
          .check(0, request_.bytes, seed_, request_.operation + " of " + std::to_string(request_.bytes) + " bytes");
  }

 private:
  void call() override {
    const Region mine = mine_.bytes().region;
    for (int i = 0; i < request_.window; ++i) {
      if (put_)
        window_.put(mine, 1, 0);
      else
        window_.get(mine, 1, 0);
    }
    if (put_) group_.flush();
  }

  const bool put_;
  BenchBuffer mine_, exposed_;
  Window window_;
  std::uint64_t seed_ = 0;
};

// Known before anything is sent: all ranks refuse.
void check_memory(const BenchRequest& request) {
  if (request.input != "host" && request.output == "host")
    throw Error(ErrorKind::unavailable, "between a GPU and a window of host memory: copy to the host first");
}

}  // namespace

std::unique_ptr<Exercise> make_one_sided_exercise(const Bench& bench, const BenchRequest& request) {
  const std::string& name = request.operation;
  const bool put = name == "put" || name == "put_bandwidth";
  if (!put && name != "get" && name != "get_bandwidth") return nullptr;
  check_memory(request);
  return std::make_unique<OneSidedExercise>(bench, request, put);
}

}  // namespace waywiser
