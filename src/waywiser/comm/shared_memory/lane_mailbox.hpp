#pragma once

#include <map>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/shared_memory/lane.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser {

// What WAYWISER_MAILBOX allows. mailbox_use() throws invalid_input.
enum class MailboxUse { all, only_short, none };
MailboxUse mailbox_use();

// Memory of one rank into which the other ranks of its machine write messages: a lane for each.
class LaneMailbox {
 public:
  // Empty if there are too many ranks, or if others could not open it: see offer().
  explicit LaneMailbox(std::size_t ranks);

  // What others need to open it, for the introduction. Empty: there is no mailbox.
  std::string offer() const;
  // Both have a mailbox, and each can open the other's.
  static bool agreed(const Introduction& one, const Introduction& other);
  // The lane from `rank` to this one.
  LaneMemory* from(std::size_t rank) const;
  // The lane from this rank, `me`, to another rank that has agreed; nullptr if that rank has ended. Throws unavailable.
  LaneMemory* open(const Introduction& other, std::size_t me);

 private:
  static LaneMemory* lane(const Mapping& mapping, std::size_t rank);

  std::size_t ranks_;
  Descriptor file_;
  Mapping mine_;
  std::map<std::uint32_t, Mapping> others_;
};

}  // namespace waywiser
