#pragma once

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/messages/message_landing.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser::messages {

// Messages from and to several ranks in one kernel: first the sends, in the order of parts. At most one message per
// rank and direction.
inline constexpr unsigned most_joint = 2 * (block::max_ranks - 1);
// All blocks of a kernel must be on the GPU at once, so that a block that waits for room does not keep out one that
// makes room. If there are many messages or few multiprocessors, a block therefore carries several channels of a long
// message, in order at both ends, which may have different numbers of blocks: the first unfinished channel always has a
// block at each end that has finished the channels before it.
inline std::uint32_t most_blocks_at_once(std::uint32_t parts, std::uint32_t multiprocessors) {
  if (parts > multiprocessors)
    throw Error(ErrorKind::unavailable, std::to_string(parts) + " messages in one kernel: the GPU has " +
                                            std::to_string(multiprocessors) + " multiprocessors");
  return std::min(static_cast<std::uint32_t>(defaults::joint_blocks), multiprocessors);
}

// What stays at this rank: blocks at the end of the grid copy it, which wait for nobody. How many is not tuned: these
// were measured alone (docs/lab/gpu-groups.md).
struct OwnCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t blocks = 0;
};
inline constexpr std::uint32_t most_own_blocks = 16, own_bytes_of_block = 256 << 10;
inline OwnCopy own_copy(const std::byte* from, std::byte* to, std::uint64_t bytes) {
  const std::uint64_t blocks = (bytes + own_bytes_of_block - 1) / own_bytes_of_block;
  return {from, to, bytes, static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, most_own_blocks))};
}

struct JointWork {
  MessagePart parts[most_joint];
  OwnCopy own;
  std::uint32_t gives = 0, count = 0;
  bool places = false;  // as in MessageWork
  std::uint32_t most_blocks = static_cast<std::uint32_t>(defaults::joint_blocks);
  const std::uint32_t* failed = nullptr;  // as FusedWork::failed

  WAYWISER_DEVICE std::uint32_t blocks_of(std::uint32_t part) const {
    const std::uint32_t share = most_blocks / count;
    return parts[part].blocks < share ? parts[part].blocks : share;
  }
  WAYWISER_DEVICE std::uint32_t blocks() const {
    std::uint32_t all = own.blocks;
    for (std::uint32_t part = 0; part < count; ++part) all += blocks_of(part);
    return all;
  }
};

// Whether a kernel with a block for each channel fits on the GPU at once.
inline bool fits(const MessageWork& work, std::uint32_t multiprocessors) {
  return work.give.blocks + work.take.blocks <= multiprocessors;
}

inline JointWork joint_of(const MessageWork& work) {
  JointWork joint;
  joint.places = work.places;
  if (work.give.blocks != 0) joint.parts[joint.count++] = work.give;
  joint.gives = joint.count;
  if (work.take.blocks != 0) joint.parts[joint.count++] = work.take;
  return joint;
}

inline Fit fit_of(const JointWork& work) {
  for (std::uint32_t part = 1; part < work.count; ++part)
    if (fit_of(work.parts[part]) != fit_of(work.parts[0])) return Fit::any;
  return fit_of(work.parts[0]);
}

template <Fit fit, typename Gpu>
WAYWISER_DEVICE void run_joint_channel(Gpu& gpu, const MessageArguments& terms, const JointWork& work,
                                       std::uint32_t part, std::uint32_t channel) {
  MessageBody<Gpu, fit> body(gpu, terms, work.parts[part], work.places, channel);
  part < work.gives ? body.send() : body.receive();
}

// Runs block `index` of those that carry a part.
template <Fit fit, typename Gpu>
WAYWISER_DEVICE void run_joint_part(Gpu& gpu, const MessageArguments& terms, const JointWork& work, std::uint32_t part,
                                    std::uint32_t index) {
  for (std::uint32_t channel = index; channel < work.parts[part].blocks; channel += work.blocks_of(part))
    run_joint_channel<fit>(gpu, terms, work, part, channel);
}

// Runs block `index` of the whole kernel.
template <Fit fit, typename Gpu>
WAYWISER_DEVICE void run_joint(Gpu& gpu, const MessageArguments& terms, const JointWork& work, std::uint32_t index) {
  std::uint32_t part = 0;
  while (part < work.count && index >= work.blocks_of(part)) index -= work.blocks_of(part++);
  if (part < work.count) return run_joint_part<fit>(gpu, terms, work, part, index);
  const OwnCopy& own = work.own;
  gpu.each_thread([&](unsigned thread) {
    copy_body(ThreadContext{index, own.blocks, thread, gpu.threads()}, own.to, own.from, own.bytes);
  });
}

}  // namespace waywiser::messages
