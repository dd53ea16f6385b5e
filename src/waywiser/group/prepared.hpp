#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/comm/elements.hpp"

namespace waywiser {

class Group;
class Stream;
struct ArrayExchange;
struct Schedule;

// What one rank gives to another in a neighbor_exchange, and what it takes from it. If two ranks are neighbours in
// several ways, tags (0 to 32766) match what is given with what is taken.
struct Exchange {
  int rank = 0;
  ConstElements give;
  Elements take;
  int give_tag = 0, take_tag = 0;
};

// An operation on arrays that stay the same, prepared once by all ranks of a group together (Group::prepare_exchange,
// of_collective, of_schedule) and then started any number of times. A start counts as a collective: all ranks start
// equally often. If the arrays are on GPUs that reach each other, a start of an exchange or a schedule is one kernel,
// whatever the number of neighbours. The arrays must outlive this object, and this object must outlive every graph
// replay that has captured a start. One that was moved from can be assigned to and destroyed; its calls throw
// invalid_input.
class [[gnu::visibility("default")]] Prepared {
 public:
  // Collective. Prepares any schedule that the ranks have made, on the schedule's caller-owned arrays, in their order:
  // at each rank all in host memory, or all on its GPU. Throws invalid_input at all ranks whose kernels would run the
  // schedule, if it is not valid or does not match those of the other ranks.
  static Prepared of_schedule(Group& group, Schedule schedule, std::span<const Elements> arrays,
                              ReduceOp op = ReduceOp::sum);
  // Collective. Prepares the group's collective of this name ("all_reduce", "scan", ...; not barrier, and none with
  // counts): each start is that call with these arrays, by the algorithm that it would take. For a broadcast `output`
  // is the array, and `input` is not used. Arrays of GPUs are set up as by Group::prepare. Throws invalid_input at all
  // ranks if the call of one is not valid or does not match those of the others.
  static Prepared of_collective(Group& group, std::string_view operation, ConstElements input, Elements output,
                                ReduceOp op = ReduceOp::sum, int root = 0);
  // Collective. Prepares an exchange of parts whose elements may lie apart. `arrays`: for each neighbour in order, the
  // array given and the array taken. Throws invalid_input like Group::prepare_exchange.
  static Prepared of_parts(Group& group, std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays);

  struct State;
  explicit Prepared(std::unique_ptr<State> state);
  Prepared(Prepared&& other) noexcept;
  Prepared& operator=(Prepared&& other) noexcept;
  ~Prepared();

  // Enqueues a start behind earlier work of the stream, which must belong to the arrays' GPU; it can be captured.
  // Throws invalid_input for host arrays, unless the operation is a collective. If no kernel serves it, it waits for
  // the stream and is complete on return.
  void start(Stream& stream);
  // Begins a start; the arrays belong to the operation until wait() has returned, which must come before the next
  // start. No stream may be using GPU arrays.
  void start();
  // Waits until the operation begun by start() is complete. Throws like the calls of the group.
  void wait();

  // The operation keeps `owner`, the owner of the arrays, until it is over, even if this object is destroyed first.
  void keep(std::shared_ptr<void> owner);

  // Why GPU arrays go through messages of the hosts; empty if they do not.
  const std::string& why_staged() const;
  // Why kernels copy a message that goes not by LL out of a receive buffer; empty if other ranks store all such
  // messages of this rank straight into its arrays, or if why_staged() has a reason.
  const std::string& why_copied() const;
  // What carries out a start, and by which algorithms this rank's messages go, for people: "one kernel of 4 blocks;
  // gives 2 by direct(piece=16K); takes 2 by LL".
  std::string explain() const;

 private:
  State& held() const;  // throws if this was moved from

  std::unique_ptr<State> state_;
};

}  // namespace waywiser
