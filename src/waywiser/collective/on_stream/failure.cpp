#include "waywiser/collective/on_stream/failure.hpp"

#include <atomic>

#include "waywiser/collective/on_stream/description.hpp"

namespace waywiser::on_stream {

namespace {

std::string pieces_text(const Description& description) {
  if (description.cut == 0) return " as a whole";
  if (description.cut == Description::symmetric) return " between symmetric arrays";
  return " in pieces of less than " + format_bytes(Bytes{1} << description.cut) + " bytes";
}

}  // namespace

std::optional<Failure> failure_in(const block::Notice& notice) {
  const std::uint64_t failed =
      std::atomic_ref(const_cast<std::uint64_t&>(notice.failed)).load(std::memory_order_acquire);
  if (failed == 0) return {};
  return Failure{static_cast<int>(static_cast<std::uint32_t>(failed)) - 1, static_cast<block::Reason>(failed >> 32),
                 notice.number, notice.mine, notice.theirs};
}

std::string rank_text(int rank, std::span<const int> in_job) {
  return "rank " + std::to_string(in_job.empty() ? rank : in_job[static_cast<std::size_t>(rank)]);
}

Error error_of(const Failure& failure, int rank, std::span<const int> in_job, Seconds deadline,
               const std::string& stopped) {
  const Description mine = Description::of(failure.mine);
  const std::string me = rank_text(rank, in_job), peer = rank_text(failure.peer, in_job),
                    of = text(mine, failure.number);
  const bool message = mine.operation == Description::message;
  const std::string call = (message ? "a message of " : "") + of;
  if (failure.reason == block::Reason::stopped)
    return {ErrorKind::io,
            me + " has given up " + call + " while it waited for " + peer + (stopped.empty() ? "" : ": " + stopped)};
  if (failure.reason == block::Reason::late)
    return {ErrorKind::timeout, me + ": " + peer + " did not send within " + format_seconds(deadline) + " in " + call};
  if (message)
    return {ErrorKind::invalid_input,
            me + " receives " + of + " from " + peer + ", which sends " +
                text(Description::from_message(static_cast<std::uint32_t>(failure.theirs)), 0)};
  const Description theirs = Description::of(failure.theirs);
  if (mine.operation == Description::places && theirs.operation == Description::places)
    return {ErrorKind::invalid_input,
            me + "'s arrays lie at other offsets of their symmetric windows than those of " + peer};
  std::string mine_text = call, their_text = text(theirs, failure.number);
  if (mine_text == their_text) {
    mine_text += pieces_text(mine);
    their_text += pieces_text(theirs);
  }
  return {ErrorKind::invalid_input, me + " is in " + mine_text + ", but " + peer + " is in " + their_text};
}

void keep_context(block::Notice& notice, std::uint32_t* word) noexcept {
  notice.kept = reinterpret_cast<std::uint64_t>(word);
}

const std::uint32_t* kept_word(const block::Notice& notice) noexcept {
  return reinterpret_cast<const std::uint32_t*>(notice.kept);
}

void stop(block::Notice& notice) noexcept { std::atomic_ref(notice.stop).store(1, std::memory_order_release); }

}  // namespace waywiser::on_stream
