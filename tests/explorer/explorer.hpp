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
  unsigned deviations = 2;            // where a thread that could go on waits for another, or a choice that costs
  bool switches_cost = false;         // also which thread goes when one has nothing to do: else all are tried
  std::uint64_t schedules = 3000000;  // more are a problem: the scenario is too large for its bound
  std::uint64_t steps = 50000;        // of one schedule; more are a problem: it does not end
};

struct Result {
  std::uint64_t schedules = 0;
  std::string problem;   // empty: there is none
  std::string schedule;  // the first that has one
};

class Course;
using Scenario = std::function<void(Course&)>;

// Every schedule, until one has a problem.
Result explore(const Scenario& scenario, Bounds bounds = {});
// The same; WAYWISER_SCHEDULE: that one alone, WAYWISER_DEVIATIONS: so many more.
Result explore_as_asked(const Scenario& scenario, Bounds bounds);
// One schedule, as a Result names it.
Result replay(const Scenario& scenario, const std::string& schedule, Bounds bounds = {});

struct Fiber;
// One decision: which of `count` was taken.
struct Decision {
  unsigned taken = 0, count = 0;  // 0: not known yet
};

// One run of a scenario. Only one thread goes at a time; it is left at steps alone.
class Course {
 public:
  Course(Bounds bounds, std::vector<Decision> decisions, std::vector<std::unique_ptr<Fiber>>& fibers);
  Course(const Course&) = delete;
  Course& operator=(const Course&) = delete;
  ~Course();

  // Before go(). A helper may be left waiting when all others have ended.
  void thread(std::string name, std::function<void()> body, bool helper = false);
  // Until all threads have ended; throws Problem.
  void go();

  // In a thread: others may go first here.
  void step();
  // In a thread: one of so many ways to go on; `costs`: all but the first are deviations.
  unsigned choose(unsigned count, bool costs = false) { return decide(count, costs); }
  // In a thread: memory that was shared is its caller's again, and nobody touches it any more.
  void give_back(const void* memory);
  // In a thread that polls: what it looked at has nothing for it. It goes on when another thread has changed something.
  void idle();
  // The thread has changed something that others may wait for.
  void changed() noexcept;
  // Ends the run. A thread that calls it leaves its stack as it is.
  [[noreturn]] void fail(const std::string& why);
  void require(bool good, const char* why) {
    if (!good) fail(why);
  }
  // The number of the running thread; none outside of threads.
  bool in_thread() const noexcept { return current_ != nullptr; }

  // Memory whose accesses are steps (of the code that is instrumented); the others are of the thread that goes.
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

// While one of its threads runs: for instrumented code.
inline Course* going = nullptr;

}  // namespace waywiser::explorer
