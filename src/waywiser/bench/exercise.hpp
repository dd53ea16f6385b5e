#pragma once

#include <memory>
#include <string_view>

#include "waywiser/bench/bench_buffer.hpp"
#include "waywiser/bench/bench_request.hpp"
#include "waywiser/comm/group.hpp"

namespace waywiser {

// What one rank does in a benchmark. prepare and check are not timed.
class Exercise {
 public:
  virtual ~Exercise() = default;
  // Fills what is sent: different bytes for each sample, so that what is left of an earlier one does not pass.
  virtual void prepare(std::uint64_t seed) = 0;
  virtual void run(int calls) = 0;
  // Throws corrupt when anything else has arrived than what the others have prepared.
  virtual void check() = 0;
};

// What an exercise works with.
struct Bench {
  Group& group;
  Platform& platform;

  Place place(std::string_view memory) const {
    return memory == "gpu" ? gpu(group.rank() % platform.gpu_count()) : host(0);
  }
};

// All ranks make it at the same time. Throws invalid_input for an operation that there is not.
std::unique_ptr<Exercise> make_exercise(const Bench& bench, const BenchRequest& request);
// nullptr: it is none of them.
std::unique_ptr<Exercise> make_message_exercise(const Bench& bench, const BenchRequest& request);
std::unique_ptr<Exercise> make_one_sided_exercise(const Bench& bench, const BenchRequest& request);
std::unique_ptr<Exercise> make_collective_exercise(const Bench& bench, const BenchRequest& request);

}  // namespace waywiser
