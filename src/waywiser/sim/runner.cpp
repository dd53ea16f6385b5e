#include "waywiser/sim/runner.hpp"

#include <algorithm>

namespace waywiser::sim {

// Serves one at a time: those who ask in turns, and what each asks for in its order. In the order of asking alone, the
// messages of a fast sender would keep a CPU from sending its own, each of which asks when the one before it is over.
class Runner::Unit {
 public:
  void ask(EventLoop& engine, Listener& who, std::uint64_t token) {
    if (busy_) return wait(who, token);
    busy_ = true;
    engine.after(0, who, token);
  }
  void leave(EventLoop& engine) {
    busy_ = !waiting_.empty();
    if (!busy_) return;
    Asked next = std::move(waiting_.front());
    waiting_.pop_front();
    engine.after(0, *next.who, next.tokens.front());
    next.tokens.pop_front();
    if (!next.tokens.empty()) waiting_.push_back(std::move(next));
  }

 private:
  struct Asked {
    Listener* who;
    std::deque<std::uint64_t> tokens;
  };
  void wait(Listener& who, std::uint64_t token) {
    const auto known = std::ranges::find(waiting_, &who, &Asked::who);
    if (known == waiting_.end())
      waiting_.push_back({&who, {token}});
    else
      known->tokens.push_back(token);
  }

  bool busy_ = false;
  std::deque<Asked> waiting_;
};

// The chunks of all transfers of a program, numbered consecutively; a token encodes chunk, leg and event.
class Runner::Stream : public Listener {
 public:
  Stream(Runner& runner, Program program, Bytes bytes, int transfers)
      : runner_(runner), program_(std::move(program)), bytes_(bytes) {
    chunk_ = program_.chunk == 0 ? std::max<Bytes>(bytes, 1) : program_.chunk;
    each_ = std::max<Bytes>(1, (bytes + chunk_ - 1) / chunk_);
    total_ = each_ * static_cast<Bytes>(transfers);
    for (const Leg& leg : program_.legs) units_.push_back(leg.unit.empty() ? -1 : runner.unit(leg.unit));
    cpu_ = runner.unit(program_.cpu);
    if (program_.first && !program_.first->unit.empty()) first_unit_ = runner.unit(program_.first->unit);
  }

  void start() { ask_cpu(0); }
  Seconds end() const { return end_; }

  void wake(std::uint64_t token) override {
    const Bytes chunk = token / stride;
    const std::size_t leg = token % stride / moments;
    switch (static_cast<Moment>(token % moments)) {
      case Moment::cpu_mine: return spend_cpu(chunk);
      case Moment::issued: return issued(chunk);
      case Moment::unit_mine: return hold(chunk, leg);
      case Moment::held: return flow(chunk, leg);
      case Moment::arrived: return arrived(chunk, leg);
      case Moment::over: return over(chunk, leg);
      case Moment::first_mine: return held_first(chunk);
      case Moment::first_held: return greeted_first(chunk);
      case Moment::first_over: return first_over(chunk);
    }
  }

 private:
  enum class Moment : std::uint8_t {
    cpu_mine,
    issued,
    unit_mine,
    held,
    arrived,
    over,
    first_mine,
    first_held,
    first_over
  };
  static constexpr std::uint64_t moments = 16, stride = 512;

  static std::uint64_t token(Bytes chunk, std::size_t leg, Moment moment) {
    return chunk * stride + leg * moments + static_cast<std::uint64_t>(moment);
  }
  EventLoop& engine() { return runner_.world_.engine(); }
  Bytes size(Bytes chunk) const {
    const Bytes at = chunk % each_ * chunk_;
    return std::min(chunk_, bytes_ - std::min(at, bytes_));
  }

  void ask_cpu(Bytes chunk) {
    runner_.units_[static_cast<std::size_t>(cpu_)].ask(engine(), *this, token(chunk, 0, Moment::cpu_mine));
  }

  void spend_cpu(Bytes chunk) {
    const Seconds once = chunk % each_ == 0 ? program_.issue : 0;
    begun_cpu_ = engine().now();
    engine().after(once + program_.issue_chunk, *this, token(chunk, 0, Moment::issued));
  }

  void issued(Bytes chunk) {
    note(program_.cpu, "issue", begun_cpu_, 0);
    if (chunk + 1 < total_) ask_cpu(chunk + 1);  // before it leaves, so that it is its turn after one of another stream
    runner_.units_[static_cast<std::size_t>(cpu_)].leave(engine());
    if (program_.first && chunk % each_ == 0) return greet(chunk);
    if (program_.first && greeted_ * each_ <= chunk) return not_greeted_.push_back(chunk);
    admit(chunk);
  }

  // The leg before the first chunk: later chunks of the transfer wait for it. Transfers are greeted in order.
  void greet(Bytes chunk) {
    if (first_unit_ < 0) return held_first(chunk);
    runner_.units_[static_cast<std::size_t>(first_unit_)].ask(engine(), *this, token(chunk, 0, Moment::first_mine));
  }

  void held_first(Bytes chunk) { engine().after(program_.first->hold, *this, token(chunk, 0, Moment::first_held)); }

  void greeted_first(Bytes chunk) {
    if (first_unit_ >= 0) runner_.units_[static_cast<std::size_t>(first_unit_)].leave(engine());
    engine().after(program_.first->latency, *this, token(chunk, 0, Moment::first_over));
  }

  void first_over(Bytes chunk) {
    ++greeted_;
    admit(chunk);
    while (!not_greeted_.empty() && not_greeted_.front() < greeted_ * each_) {
      admit(not_greeted_.front());
      not_greeted_.pop_front();
    }
  }

  void admit(Bytes chunk) {
    if (held_back_.empty() && may_enter(chunk))
      enter(chunk, 0);
    else
      held_back_.push_back(chunk);
  }

  bool may_enter(Bytes chunk) const {
    if (program_.in_turn && done_ < chunk / each_ * each_) return false;
    return program_.depth == 0 || chunk < done_ + static_cast<Bytes>(program_.depth);
  }

  void enter(Bytes chunk, std::size_t leg) {
    if (leg == program_.legs.size()) return leave(chunk);
    if (units_[leg] < 0) return hold(chunk, leg);
    runner_.units_[static_cast<std::size_t>(units_[leg])].ask(engine(), *this, token(chunk, leg, Moment::unit_mine));
  }

  void hold(Bytes chunk, std::size_t leg) {
    if (runner_.trace_ != nullptr) begun_[{chunk, leg}] = engine().now();
    engine().after(program_.legs[leg].hold, *this, token(chunk, leg, Moment::held));
  }

  void flow(Bytes chunk, std::size_t leg) {
    const Leg& what = program_.legs[leg];
    engine().transfer(what.uses, what.cap, static_cast<double>(size(chunk)), 0, *this,
                      token(chunk, leg, Moment::arrived));
  }

  void arrived(Bytes chunk, std::size_t leg) {
    const Leg& what = program_.legs[leg];
    if (runner_.trace_ != nullptr) note(what.unit, "leg " + std::to_string(leg + 1), begun_[{chunk, leg}], size(chunk));
    if (units_[leg] >= 0) runner_.units_[static_cast<std::size_t>(units_[leg])].leave(engine());
    engine().after(what.latency, *this, token(chunk, leg, Moment::over));
  }

  void over(Bytes chunk, std::size_t leg) { enter(chunk, leg + 1); }

  void leave(Bytes) {
    if (++done_ == total_) --runner_.left_;
    end_ = engine().now();
    while (!held_back_.empty() && may_enter(held_back_.front())) {
      const Bytes next = held_back_.front();
      held_back_.pop_front();
      enter(next, 0);
    }
  }

  void note(const std::string& row, const std::string& what, Seconds begin, Bytes bytes) {
    Trace* trace = runner_.trace_;
    if (trace == nullptr || trace->spans.size() >= most_spans) return;
    trace->spans.push_back({row, what, begin, engine().now(), bytes});
  }

  Runner& runner_;
  Program program_;
  Bytes bytes_, chunk_ = 1, each_ = 1, total_ = 1, done_ = 0;
  std::vector<int> units_;
  int cpu_ = 0;
  std::deque<Bytes> held_back_, not_greeted_;
  Bytes greeted_ = 0;
  int first_unit_ = -1;
  std::map<std::pair<Bytes, std::size_t>, Seconds> begun_;  // only when there is a trace
  Seconds end_ = 0, begun_cpu_ = 0;
};

Runner::Runner(World& world, Trace* trace) : world_(world), trace_(trace) {}
Runner::~Runner() = default;

int Runner::unit(const std::string& name) {
  const auto [known, fresh] = unit_numbers_.emplace(name, static_cast<int>(units_.size()));
  if (fresh) units_.emplace_back();
  return known->second;
}

std::size_t Runner::add(const Program& program, Bytes bytes, int transfers) {
  Group group;
  if (program.parts.empty()) {
    group.members.push_back(streams_.size());
    group.finish = program.finish;
    streams_.emplace_back(*this, program, bytes, transfers);
  }
  for (const Program& part : program.parts) {
    group.members.push_back(streams_.size());
    group.finish = std::max(group.finish, part.finish);
    streams_.emplace_back(*this, part, part.share, transfers);
  }
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

void Runner::run() {
  left_ = streams_.size();
  for (Stream& stream : streams_) stream.start();
  world_.engine().run([this] { return left_ > 0; });  // whatever else goes on in the world
}

Seconds Runner::ended(std::size_t number) const {
  Seconds end = 0;
  for (const std::size_t member : groups_[number].members) end = std::max(end, streams_[member].end());
  return end + groups_[number].finish;
}

}  // namespace waywiser::sim
