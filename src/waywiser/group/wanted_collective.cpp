#include "waywiser/group/wanted_collective.hpp"

#include <numeric>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/group/call_checks.hpp"

namespace waywiser {
namespace {

// The other array of a rank that is not the root is not used.
bool uses_both(const CollectiveCall& call) {
  const bool to_root = call.operation == Collective::gather || call.operation == Collective::reduce;
  return call.rank == call.root || !(to_root || call.operation == Collective::scatter);
}

Bytes own_block(const CollectiveCall& call) {
  const Bytes size = bytes_of(call.as.type);
  if (call.counts.empty()) return static_cast<std::size_t>(call.rank) * call.count * size;
  return std::accumulate(call.counts.begin(), call.counts.begin() + call.rank, std::size_t{0}) * size;
}

// For people, before a rank; nullptr: there is no root.
const char* root_of(Collective operation) {
  switch (operation) {
    case Collective::broadcast: return "broadcast from";
    case Collective::reduce: return "reduce to";
    case Collective::gather: return "gather to";
    case Collective::scatter: return "scatter from";
    default: return nullptr;
  }
}

bool reduces(Collective operation) {
  return operation == Collective::all_reduce || operation == Collective::reduce ||
         operation == Collective::reduce_scatter || operation == Collective::scan || operation == Collective::exscan;
}

bool gets_nothing(const GroupCore& core, const WantedCollective& wanted) {
  return (wanted.operation == Collective::reduce && core.rank() != wanted.root) ||
         (wanted.operation == Collective::exscan && core.rank() == 0);
}

void take_nothing(WantedCollective& wanted) {
  wanted.output = Elements({nullptr, 0, wanted.input.region.place}, wanted.input.type);
}

// Returns the number of elements that the ranks compare.
std::size_t checked_count(const GroupCore& core, WantedCollective& wanted) {
  const CallKind kind = kind_of(wanted.operation);
  const auto ranks = static_cast<std::size_t>(core.size());
  const bool is_root = core.rank() == wanted.root;
  const std::size_t in = wanted.input.count(), out = wanted.output.count();
  switch (wanted.operation) {
    case Collective::all_gather: check_count(kind, "the output", out, in * ranks); return in;
    case Collective::gather:
      if (is_root) check_count(kind, "the output", out, in * ranks);
      return in;
    case Collective::reduce_scatter: check_count(kind, "the input", in, out * ranks); return out;
    case Collective::scatter:
      if (is_root) check_count(kind, "the input", in, out * ranks);
      return out;
    case Collective::all_to_all:
      check_count(kind, "the output", out, in);
      if (in % ranks != 0)
        refuse(kind, std::to_string(in) + " elements cannot be shared out to " + std::to_string(ranks) + " ranks");
      return in / ranks;
    default: break;
  }
  if (gets_nothing(core, wanted))
    take_nothing(wanted);
  else
    check_count(kind, "the output", out, in);
  return in;
}

}  // namespace

CollectiveCall numbered(GroupCore& core, WantedCollective& wanted) {
  const CallKind kind = kind_of(wanted.operation);
  const char* root = root_of(wanted.operation);
  if (root != nullptr) core.check_rank(wanted.root, root);
  const bool scans = wanted.operation == Collective::scan || wanted.operation == Collective::exscan;
  if (scans && wanted.op == ReduceOp::avg) refuse(kind, "there is no avg");
  if (scans && gets_nothing(core, wanted)) take_nothing(wanted);
  if (wanted.operation == Collective::broadcast) wanted.input = wanted.output;
  if (reduces(wanted.operation))
    check_reduces(kind, wanted.input, wanted.output, wanted.op);
  else
    check_types(kind, wanted.input, wanted.output);
  const std::size_t count = checked_count(core, wanted);
  const bool by_output = wanted.operation == Collective::reduce_scatter || wanted.operation == Collective::scatter;
  return core.next_collective(wanted.operation, by_output ? ConstElements(wanted.output) : wanted.input, count,
                              reduces(wanted.operation) ? wanted.op : ReduceOp::sum,
                              root != nullptr ? wanted.root : -1);
}

void check_shared(const CollectiveCall& call, ConstElements input, Elements output, bool copies) {
  if (share_memory(input.region, output.region) && uses_both(call))
    check_apart(call.as.kind, {input.region, output.region, own_block(call), copies});
}

Collective parse_prepared(std::string_view text) {
  const Collective operation = parse_collective(text);
  if (operation == Collective::barrier || operation == Collective::neighbor_exchange)
    throw Error(ErrorKind::invalid_input, std::string(text) + " is no collective of two arrays that can be prepared");
  return operation;
}

}  // namespace waywiser
