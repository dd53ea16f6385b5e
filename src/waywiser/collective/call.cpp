#include "waywiser/collective/call.hpp"

#include <array>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::array<std::string_view, collectives> names{
    "all_reduce", "reduce",     "reduce_scatter", "broadcast",         "all_gather", "gather",
    "scatter",    "all_to_all", "barrier",        "neighbor_exchange", "scan",       "exscan"};

constexpr std::array<CallKind, collectives> kinds{
    CallKind::all_reduce, CallKind::reduce,  CallKind::reduce_scatter, CallKind::broadcast, CallKind::all_gather,
    CallKind::gather,     CallKind::scatter, CallKind::all_to_all,     CallKind::barrier,   CallKind::neighbor_exchange,
    CallKind::scan,       CallKind::exscan};

void check_rank(const CollectiveCall& call, int rank, const char* what) {
  if (rank < 0 || rank >= call.ranks)
    throw Error(ErrorKind::invalid_input, std::string(name(call.operation)) + ": " + what + " " + std::to_string(rank) +
                                              " is not one of " + std::to_string(call.ranks) + " ranks");
}

void check_length(const CollectiveCall& call, std::size_t length, const char* what) {
  if (length != 0 && length != static_cast<std::size_t>(call.ranks))
    throw Error(ErrorKind::invalid_input, std::string(name(call.operation)) + ": " + std::to_string(length) + " " +
                                              what + " for " + std::to_string(call.ranks) + " ranks");
}

}  // namespace

std::string_view name(Collective operation) noexcept { return names[static_cast<std::size_t>(operation)]; }

CallKind kind_of(Collective operation) noexcept { return kinds[static_cast<std::size_t>(operation)]; }

Collective parse_collective(std::string_view text) {
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return static_cast<Collective>(i);
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  throw Error(ErrorKind::invalid_input, quoted(text, 40) + " is no collective operation; there are " + known);
}

void check_call(const CollectiveCall& call) {
  if (call.ranks < 1)
    throw Error(ErrorKind::invalid_input,
                std::string(name(call.operation)) + ": " + std::to_string(call.ranks) + " ranks");
  check_rank(call, call.rank, "rank");
  check_rank(call, call.root, "root");
  for (const Neighbor& neighbor : call.neighbors) check_rank(call, neighbor.peer, "neighbour");
  check_length(call, call.counts.size(), "counts");
  check_length(call, call.receive_counts.size(), "counts to receive");
  check_length(call, call.machine_of.size(), "machines");
  if (call.operation == Collective::all_to_all && call.counts.empty() != call.receive_counts.empty())
    throw Error(ErrorKind::invalid_input, "all_to_all: counts to send and to receive are given together or not at all");
}

}  // namespace waywiser
