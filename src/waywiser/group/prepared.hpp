#pragma once

#include <memory>
#include <span>
#include <string>

#include "waywiser/comm/elements.hpp"

namespace waywiser {

class Group;
class Stream;
struct ArrayExchange;
struct Schedule;

// What one rank gives to another in a neighbor_exchange, and what it takes from it. Where two ranks are neighbours in
// several ways, what is given with a tag (0 to 32766) is taken with the same.
struct Exchange {
  int rank = 0;
  ConstElements give;
  Elements take;
  int give_tag = 0, take_tag = 0;
};

// An operation on arrays that stay, prepared once by all ranks of a group together (Group::prepare_exchange,
// of_schedule) and started as often as wanted, by all of them alike: a start counts as a collective. Where the
// arrays are on GPUs that reach each other, a start is one kernel, whatever the number of neighbours. The arrays must
// live until this goes, and so must it while a graph is replayed that has captured a start.
class [[gnu::visibility("default")]] Prepared {
 public:
  // Any schedule that this rank and the others have made, on the arrays of it that are the caller's, in their order:
  // those of one rank all of the host, or all of its GPU. By all ranks of the group together. Throws invalid_input at
  // all ranks whose kernels would run it, if it is not valid or does not fit to those of the others.
  static Prepared of_schedule(Group& group, Schedule schedule, std::span<const Elements> arrays,
                              ReduceOp op = ReduceOp::sum);
  // An exchange of parts whose elements may lie apart. `arrays`: those of what each of the neighbours gives and takes,
  // in their order. By all ranks of the group together. Throws invalid_input as Group::prepare_exchange does.
  static Prepared of_parts(Group& group, std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays);

  struct State;
  explicit Prepared(std::unique_ptr<State> state);
  Prepared(Prepared&& other) noexcept;
  Prepared& operator=(Prepared&& other) noexcept;
  ~Prepared();

  // Enqueued behind what is in the stream, of the GPU that has the arrays; can be captured. Throws invalid_input for
  // arrays of the host; where no kernel serves, it waits for the stream and is complete on return.
  void start(Stream& stream);
  // Begins; the arrays are the operation's until wait() has returned, which comes before the next start. Those of GPUs
  // must not be in use by any stream.
  void start();
  // Until what start() has begun is complete. Throws as the calls of the group do.
  void wait();

  // What is begun keeps this until it is over, even if this object goes first: the owner of the arrays.
  void keep(std::shared_ptr<void> owner);

  // Why arrays of GPUs go through messages of the hosts; empty while they do not.
  const std::string& why_staged() const noexcept;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace waywiser
