#include "waywiser/group/wanted_collective.hpp"

#include <numeric>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/group/call_checks.hpp"

namespace waywiser {
namespace {

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

// Which of its arrays a rank uses; a broadcast has one.
struct Uses {
  bool input = true, output = true;
};

Uses uses_of(Collective operation, const RankOfCall& at) {
  const bool is_root = at.rank == at.root;
  switch (operation) {
    case Collective::broadcast: return {false, true};
    case Collective::reduce:
    case Collective::gather: return {true, is_root};
    case Collective::scatter: return {is_root, true};
    case Collective::exscan: return {true, at.rank != 0};
    default: return {};
  }
}

// The block of each rank is the output, not the input.
bool counts_by_output(Collective operation) {
  return operation == Collective::reduce_scatter || operation == Collective::scatter;
}

// Returns the number of elements that the ranks compare.
std::size_t checked_count(const WantedCollective& wanted, const RankOfCall& at, const Uses& uses) {
  const CallKind kind = kind_of(wanted.operation);
  const std::size_t in = wanted.input.count(), out = wanted.output.count();
  const auto ranks = static_cast<std::size_t>(at.ranks);
  if (wanted.operation == Collective::all_to_all) {
    check_count(kind, "the output", out, in);
    if (in % ranks != 0)
      refuse(kind, std::to_string(in) + " elements cannot be shared out to " + std::to_string(ranks) + " ranks");
    return in / ranks;
  }
  const bool by_output = counts_by_output(wanted.operation);
  const std::size_t count = by_output ? out : in;
  const ArrayCounts needed = array_counts(wanted.operation, count, at);
  if (by_output && uses.input) check_count(kind, "the input", in, needed.input);
  if (!by_output && uses.output) check_count(kind, "the output", out, needed.output);
  return count;
}

}  // namespace

ArrayCounts array_counts(Collective operation, std::size_t count, const RankOfCall& at) {
  ArrayCounts counts{count, count};
  const std::size_t all = static_cast<std::size_t>(at.ranks) * count;
  switch (operation) {
    case Collective::all_gather:
    case Collective::gather: counts.output = all; break;
    case Collective::reduce_scatter:
    case Collective::scatter: counts.input = all; break;
    case Collective::all_to_all: counts = {all, all}; break;
    default: break;
  }
  const Uses uses = uses_of(operation, at);
  return {uses.input ? counts.input : 0, uses.output ? counts.output : 0};
}

ArrayCounts array_counts(std::string_view operation, std::size_t count, const RankOfCall& at) {
  for (int i = 0; i < collectives; ++i)
    if (const auto each = static_cast<Collective>(i); name(each) == operation) return array_counts(each, count, at);
  return {count, count};
}

CollectiveCall numbered(GroupCore& core, WantedCollective& wanted) {
  const CallKind kind = kind_of(wanted.operation);
  const char* root = root_of(wanted.operation);
  if (root != nullptr) core.check_rank(wanted.root, root);
  if (wanted.operation == Collective::broadcast) {  // of one array: nothing to compare
    wanted.input = wanted.output;
    return core.next_collective(wanted.operation, wanted.input, wanted.input.count(), ReduceOp::sum, wanted.root);
  }
  const bool scans = wanted.operation == Collective::scan || wanted.operation == Collective::exscan;
  if (scans && wanted.op == ReduceOp::avg) refuse(kind, "there is no avg");
  const RankOfCall at{core.rank(), core.size(), wanted.root};
  const Uses uses = uses_of(wanted.operation, at);
  if (!uses.output && reduces(wanted.operation))
    wanted.output = Elements({nullptr, 0, wanted.input.region.place}, wanted.input.type);
  if (reduces(wanted.operation))
    check_reduces(kind, wanted.input, wanted.output, wanted.op);
  else
    check_types(kind, wanted.input, wanted.output);
  const std::size_t count = checked_count(wanted, at, uses);
  const ConstElements compared = counts_by_output(wanted.operation) ? ConstElements(wanted.output) : wanted.input;
  return core.next_collective(wanted.operation, compared, count, reduces(wanted.operation) ? wanted.op : ReduceOp::sum,
                              root != nullptr ? wanted.root : -1);
}

void check_shared(const CollectiveCall& call, ConstElements input, Elements output, bool copies) {
  const Uses uses = uses_of(call.operation, {call.rank, call.ranks, call.root});
  if (uses.input && uses.output && share_memory(input.region, output.region))
    check_apart(call.as.kind, {input.region, output.region, own_block(call), copies});
}

Collective parse_prepared(std::string_view text) {
  const Collective operation = parse_collective(text);
  if (operation == Collective::barrier || operation == Collective::neighbor_exchange)
    throw Error(ErrorKind::invalid_input, std::string(text) + " is no collective of two arrays that can be prepared");
  return operation;
}

}  // namespace waywiser
