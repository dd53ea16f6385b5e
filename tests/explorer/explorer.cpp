#include "tests/explorer/explorer.hpp"

#include <malloc.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

namespace waywiser::explorer {
namespace {

Course* running = nullptr;
ucontext_t outside;  // where go() is

// If all threads are idle, each gets this many more turns, since some poll certain things only now and then.
constexpr unsigned turns_before_deadlock = 200;

std::string text_of(const std::vector<Decision>& decisions) {
  std::string text;
  std::size_t zeros = 0;
  for (const Decision& each : decisions) {
    if (each.taken == 0) {
      ++zeros;
      continue;
    }
    text += (text.empty() ? "" : ".") + std::to_string(zeros) + ":" + std::to_string(each.taken);
    zeros = 0;
  }
  return text.empty() ? "default" : text;
}

// "3:1.0:2": three decisions for choice 0, one for choice 1, none for choice 0, one for choice 2.
std::vector<Decision> decisions_in(const std::string& text) {
  std::vector<Decision> decisions;
  for (std::size_t at = 0; text != "default" && at < text.size();) {
    std::size_t used = 0;
    const unsigned long zeros = std::stoul(text.substr(at), &used);
    at += used + 1;
    const unsigned long taken = std::stoul(text.substr(at), &used);
    at += used + 1;
    decisions.resize(decisions.size() + zeros);
    decisions.push_back({static_cast<unsigned>(taken), 0});
  }
  return decisions;
}

// False: there is no other schedule.
bool next_schedule(std::vector<Decision>& decisions) {
  while (!decisions.empty() && decisions.back().taken + 1 >= decisions.back().count) decisions.pop_back();
  if (decisions.empty()) return false;
  ++decisions.back().taken;
  return true;
}

}  // namespace

struct Fiber {
  static constexpr std::size_t stack_bytes = 128 << 10;
  std::string name;
  std::function<void()> body;
  bool helper = false, idle = false, ended = true;
  unsigned number = 0;
  std::uint64_t changes = 0;        // its own
  std::uint64_t others_before = 0;  // changes of others when its turn began
  ucontext_t context{};
  std::vector<char> stack = std::vector<char>(stack_bytes);

  static void enter() {
    Course& course = *running;
    Fiber& me = *course.current_;
    try {
      me.body();
    } catch (const std::exception& error) {
      if (course.problem_.empty()) course.problem_ = me.name + ": " + error.what();
    }
    me.ended = true;
    ++me.changes;
    ++course.changes_;
    setcontext(&outside);
  }
};

Course::Course(Bounds bounds, std::vector<Decision> decisions, std::vector<std::unique_ptr<Fiber>>& fibers)
    : bounds_(bounds), decisions_(std::move(decisions)), fibers_(fibers) {
  running = this;
}
Course::~Course() { running = nullptr; }

void Course::thread(std::string name, std::function<void()> body, bool helper) {
  if (threads_ == most_threads) throw std::invalid_argument("too many threads");
  if (threads_ == fibers_.size()) fibers_.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers_[threads_];
  fiber.name = std::move(name);
  fiber.body = std::move(body);
  fiber.helper = helper;
  fiber.idle = fiber.ended = false;
  fiber.number = static_cast<unsigned>(threads_++);
  fiber.changes = fiber.others_before = 0;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.data();
  fiber.context.uc_stack.ss_size = fiber.stack.size();
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &Fiber::enter, 0);
}

bool Course::is_blocked(const Fiber& fiber) const noexcept {
  return fiber.idle && changes_ - fiber.changes == fiber.others_before;
}

std::vector<Fiber*> Course::ready_but(const Fiber* one) const {
  std::vector<Fiber*> ready;
  for (std::size_t i = 0; i < threads_; ++i)
    if (fibers_[i].get() != one && !fibers_[i]->ended && !is_blocked(*fibers_[i])) ready.push_back(fibers_[i].get());
  return ready;
}

bool Course::only_helpers_are_left() const {
  return std::all_of(fibers_.begin(), fibers_.begin() + static_cast<std::ptrdiff_t>(threads_),
                     [](const auto& each) { return each->ended || each->helper; });
}

// All threads are idle: each gets some more turns, one after another, without choices.
Fiber* Course::next_in_turn() {
  if (changes_ != changes_when_stuck_) patience_ = 0;
  changes_when_stuck_ = changes_;
  if (++patience_ > turns_before_deadlock * threads_) {
    problem_ = "a deadlock: " + names_of_waiting();
    return nullptr;
  }
  do turn_ = (turn_ + 1) % static_cast<unsigned>(threads_);
  while (fibers_[turn_]->ended);
  return fibers_[turn_].get();
}

Fiber* Course::next_to_go() {
  if (!problem_.empty() || only_helpers_are_left()) return nullptr;
  if (next_ != nullptr) return std::exchange(next_, nullptr);
  const std::vector<Fiber*> ready = ready_but(nullptr);
  if (ready.empty()) return next_in_turn();
  return ready[decide(static_cast<unsigned>(ready.size()), bounds_.switches_cost)];
}

void Course::go() {
  while (Fiber* fiber = next_to_go()) {
    current_ = fiber;
    fiber->idle = false;
    going = this;
    swapcontext(&outside, &fiber->context);
    going = nullptr;
    current_ = nullptr;
  }
  if (!problem_.empty()) throw Problem();
}

void Course::leave() {
  Fiber& me = *current_;
  swapcontext(&me.context, &outside);
}

void Course::step() {
  if (++steps_ > bounds_.steps) fail("it does not end");
  if (spent_ >= bounds_.deviations) return;
  const std::vector<Fiber*> others = ready_but(current_);
  const unsigned taken = decide(1 + static_cast<unsigned>(others.size()), true);
  if (taken == 0) return;
  next_ = others[taken - 1];
  leave();
}

void Course::idle() {
  Fiber& me = *current_;
  if (++steps_ > bounds_.steps) fail("it does not end");
  me.idle = true;
  leave();
  me.others_before = changes_ - me.changes;
}

void Course::changed() noexcept {
  ++changes_;
  ++current_->changes;
}

void Course::fail(const std::string& why) {
  if (current_ == nullptr) {
    problem_ = why;
    throw Problem();
  }
  problem_ = current_->name + ": " + why;
  for (;;) leave();
}

void Course::give_back(const void* memory) {
  if (const std::string problem = regions.give_back(current_->number, memory); !problem.empty()) fail(problem);
}
std::string Course::note(const void* address, std::size_t bytes, Access access) {
  return regions.note(current_->number, address, bytes, access);
}
void Course::acquire(const void* address) { regions.acquire(current_->number, address); }
void Course::release(const void* address, bool continues) { regions.release(current_->number, address, continues); }

unsigned Course::decide(unsigned count, bool costs) {
  if (count <= 1 || (costs && spent_ >= bounds_.deviations)) return 0;
  if (position_ == decisions_.size()) decisions_.push_back({0, count});
  Decision& decision = decisions_[position_++];
  if (decision.count != 0 && decision.count != count) fail("the scenario is not the same each time");
  decision.count = count;
  decision.taken = std::min(decision.taken, count - 1);
  if (costs && decision.taken != 0) ++spent_;
  return decision.taken;
}

std::string Course::names_of_waiting() const {
  std::string names;
  for (std::size_t i = 0; i < threads_; ++i)
    if (!fibers_[i]->ended && !fibers_[i]->helper) names += (names.empty() ? "" : ", ") + fibers_[i]->name;
  return names + " wait for ever";
}

Result explore_from(const Scenario& scenario, Bounds bounds, std::vector<Decision> decisions, bool all) {
  mallopt(M_MMAP_THRESHOLD, 64 << 20);  // memory that one run frees is kept for the next run, without system calls
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  std::vector<std::unique_ptr<Fiber>> fibers;
  Result result;
  do {
    Course course(bounds, std::move(decisions), fibers);
    ++result.schedules;
    try {
      scenario(course);
    } catch (const Problem&) {
      result.problem = course.problem_;
      result.schedule = text_of(course.decisions_);
      return result;
    }
    decisions = std::move(course.decisions_);
    decisions.resize(course.position_);
    if (result.schedules == bounds.schedules && all) {
      result.problem = "there are more than " + std::to_string(result.schedules) + " schedules";
      return result;
    }
  } while (all && next_schedule(decisions));
  return result;
}

Result explore(const Scenario& scenario, Bounds bounds) { return explore_from(scenario, bounds, {}, true); }

Result explore_as_asked(const Scenario& scenario, Bounds bounds) {
  if (const char* more = std::getenv("WAYWISER_DEVIATIONS")) {
    bounds.deviations += static_cast<unsigned>(std::stoul(more));
    bounds.schedules *= 1000;
  }
  if (const char* schedule = std::getenv("WAYWISER_SCHEDULE")) return replay(scenario, schedule, bounds);
  return explore(scenario, bounds);
}

Result replay(const Scenario& scenario, const std::string& schedule, Bounds bounds) {
  return explore_from(scenario, bounds, decisions_in(schedule), false);
}

}  // namespace waywiser::explorer
