#pragma once

#include <optional>
#include <span>
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
// "rank 5": a rank of kernels by its number in the job; empty: they number ranks as the job does.
std::string rank_text(int rank, std::span<const int> in_job);
// `rank`: this rank. `in_job`: see rank_text(). `deadline`: of a wait. `stopped`: why the host has ended the wait.
Error error_of(const Failure& failure, int rank, std::span<const int> in_job, Seconds deadline,
               const std::string& stopped);
// Kernels that give up set the word, in their GPU's memory as they reach it, and end in place of trapping.
void keep_context(block::Notice& notice, std::uint32_t* word) noexcept;
// That word, or nullptr.
const std::uint32_t* kept_word(const block::Notice& notice) noexcept;
// Ends all waits of kernels.
void stop(block::Notice& notice) noexcept;

}  // namespace waywiser::on_stream
