#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/explorer/shared_regions.hpp"

namespace waywiser::explorer {

// Runs a small scenario of some threads under every schedule up to a bound (README.md).
struct Bounds {
  unsigned deviations = 2;            // preemptions of a thread that could continue, and choices that cost
  bool switches_cost = false;         // count switches away from idle threads too; otherwise all of them are tried
  std::uint64_t schedules = 3000000;  // if there are more, the scenario is too large for its bound: a problem
  std::uint64_t steps = 50000;        // of one schedule; if there are more, the schedule does not end: a problem
};

struct Result {
  std::uint64_t schedules = 0;
  std::string problem;   // empty: there is none
  std::string schedule;  // the first one with a problem
};

class Course;
using Scenario = std::function<void(Course&)>;

// Runs every schedule until one has a problem.
Result explore(const Scenario& scenario, Bounds bounds = {});
// The same. WAYWISER_SCHEDULE: run only that schedule. WAYWISER_DEVIATIONS: allow this many deviations more.
Result explore_as_asked(const Scenario& scenario, Bounds bounds);
// Runs one schedule; `schedule` as in Result.
Result replay(const Scenario& scenario, const std::string& schedule, Bounds bounds = {});

struct Fiber;
// One decision: `taken` is the index of the choice among `count`.
struct Decision {
  unsigned taken = 0, count = 0;  // 0: not known yet
};

// One run of a scenario. Only one thread runs at a time, and switches happen only at steps.
class Course {
 public:
  Course(Bounds bounds, std::vector<Decision> decisions, std::vector<std::unique_ptr<Fiber>>& fibers);
  Course(const Course&) = delete;
  Course& operator=(const Course&) = delete;
  ~Course();

  // Adds a thread; call it before go(). A helper may still be waiting when all other threads have ended.
  void thread(std::string name, std::function<void()> body, bool helper = false);
  // Runs the threads until all have ended. Throws Problem.
  void go();

  // In a thread: other threads may run here first.
  void step();
  // In a thread: picks one of `count` ways to continue. `costs`: all but the first count as deviations.
  unsigned choose(unsigned count, bool costs = false) { return decide(count, costs); }
  // In a thread: shared memory belongs to its caller again; every later access by another thread is an error.
  void give_back(const void* memory);
  // In a thread that polls without success: it continues once another thread has changed something.
  void idle();
  // The thread has changed something that others may wait for.
  void changed() noexcept;
  // Ends the run. The stack of a thread that calls it is not unwound.
  [[noreturn]] void fail(const std::string& why);
  void require(bool good, const char* why) {
    if (!good) fail(why);
  }
  // The number of the running thread; none outside of threads.
  bool in_thread() const noexcept { return current_ != nullptr; }

  // Memory whose accesses by instrumented code are steps. Accesses by other code belong to the current step.
  SharedRegions regions;
  std::string note(const void* address, std::size_t bytes, Access access);
  void acquire(const void* address);
  void release(const void* address, bool continues);

 private:
  friend Result explore_from(const Scenario&, Bounds, std::vector<Decision>, bool);
  friend struct Fiber;

  unsigned decide(unsigned count, bool costs);
  bool is_blocked(const Fiber& fiber) const noexcept;
  std::vector<Fiber*> ready_but(const Fiber* one) const;
  Fiber* next_to_go();
  Fiber* next_in_turn();
  bool only_helpers_are_left() const;
  void leave();
  std::string names_of_waiting() const;

  const Bounds bounds_;
  std::vector<Decision> decisions_;
  std::size_t position_ = 0;
  unsigned spent_ = 0;
  std::uint64_t steps_ = 0, changes_ = 0;
  unsigned patience_ = 0, turn_ = 0;
  std::uint64_t changes_when_stuck_ = 0;
  std::vector<std::unique_ptr<Fiber>>& fibers_;
  std::size_t threads_ = 0;
  Fiber* current_ = nullptr;
  Fiber* next_ = nullptr;
  std::string problem_;
};

// Thrown by go().
struct Problem {};

// The course whose thread runs now; instrumented code reports to it.
inline Course* going = nullptr;

}  // namespace waywiser::explorer
