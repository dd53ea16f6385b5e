#pragma once

#include <optional>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/collective/fused/landing.hpp"

namespace waywiser::fused {

// How an operation on a GPU has failed, as its kernel has told the host.
struct Failure {
  int peer = 0;
  Reason reason = Reason::late;
  std::uint64_t number = 0, mine = 0, theirs = 0;
};

// Nothing while none has.
std::optional<Failure> failure_in(const Notice& notice);
// `rank`: this one. `deadline`: of a wait. `stopped`: why the host has ended the wait.
Error error_of(const Failure& failure, int rank, Seconds deadline, const std::string& stopped);
// Ends all waits of kernels.
void stop(Notice& notice) noexcept;

}  // namespace waywiser::fused
