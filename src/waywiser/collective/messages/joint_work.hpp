#pragma once

#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/messages/message_landing.hpp"

namespace waywiser::messages {

// Messages from and to several ranks in one kernel: those that are given first, in the order of parts. No two are with
// one rank in one direction.
inline constexpr unsigned most_joint = 2 * (block::max_ranks - 1);
// All blocks of a kernel are on the GPU at once: one that waits for room does not keep out one that makes room. So a
// block carries several channels of a long message where there are many messages, from the first to the last at both
// ends.
inline constexpr std::uint32_t most_joint_blocks = 96;

struct JointWork {
  MessagePart parts[most_joint];
  std::uint32_t gives = 0, count = 0;
  bool places = false;  // as MessageWork has it

  WAYWISER_DEVICE std::uint32_t blocks_of(std::uint32_t part) const {
    const std::uint32_t share = most_joint_blocks / count;
    return parts[part].blocks < share ? parts[part].blocks : share;
  }
  WAYWISER_DEVICE std::uint32_t blocks() const {
    std::uint32_t all = 0;
    for (std::uint32_t part = 0; part < count; ++part) all += blocks_of(part);
    return all;
  }
};

inline Fit fit_of(const JointWork& work) {
  for (std::uint32_t part = 1; part < work.count; ++part)
    if (fit_of(work.parts[part]) != fit_of(work.parts[0])) return Fit::any;
  return fit_of(work.parts[0]);
}

// Block `index` of those that carry a part.
template <Fit fit, typename Gpu>
WAYWISER_DEVICE void run_joint_part(Gpu& gpu, const MessageArguments& terms, const JointWork& work, std::uint32_t part,
                                    std::uint32_t index) {
  const MessagePart& mine = work.parts[part];
  for (std::uint32_t channel = index; channel < mine.blocks; channel += work.blocks_of(part)) {
    MessageBody<Gpu, fit> body(gpu, terms, mine, work.places, channel);
    part < work.gives ? body.send() : body.receive();
  }
}

// Block `index` of the whole kernel.
template <Fit fit, typename Gpu>
WAYWISER_DEVICE void run_joint(Gpu& gpu, const MessageArguments& terms, const JointWork& work, std::uint32_t index) {
  std::uint32_t part = 0;
  while (index >= work.blocks_of(part)) index -= work.blocks_of(part++);
  run_joint_part<fit>(gpu, terms, work, part, index);
}

}  // namespace waywiser::messages
