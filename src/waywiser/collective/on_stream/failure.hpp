#pragma once

#include <optional>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/kernels/block/notice.hpp"

namespace waywiser::on_stream {

// The failure of an operation on a GPU, as its kernel has reported it to the host.
struct Failure {
  int peer = 0;
  block::Reason reason = block::Reason::late;
  std::uint64_t number = 0, mine = 0, theirs = 0;
};

// Empty: no failure.
std::optional<Failure> failure_in(const block::Notice& notice);
// `rank`: this rank. `deadline`: of a wait. `stopped`: why the host has ended the wait.
Error error_of(const Failure& failure, int rank, Seconds deadline, const std::string& stopped);
// Ends all waits of kernels.
void stop(block::Notice& notice) noexcept;

}  // namespace waywiser::on_stream
