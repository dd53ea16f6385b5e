#pragma once

#include "waywiser/device/region.hpp"
#include "waywiser/transport/courier/courier_kernel.hpp"

namespace waywiser {

// The mailboxes of a kernel as the host uses them. A put goes in parts, each of which is one message: the shares of a
// part are posted to all lanes at once, and the part has arrived when each lane has finished its share.
class MailboxSet {
 public:
  MailboxSet(Mailbox* boxes, CourierShape shape) : boxes_(boxes), shape_(shape) {}

  Bytes part_of(Bytes left) const;
  // `number`: one more than that of the message before.
  void post_put(std::byte* gpu, const std::byte* source, Bytes part, std::uint32_t number);
  // Whether this message, or a later one, is done.
  bool put_done(Bytes part, std::uint32_t number) const;
  // The same for a process that did not post it: each process polls words of its own.
  bool put_arrived(Bytes part, std::uint32_t number) const;
  void post_get(const std::byte* gpu, Bytes part, std::uint32_t number);
  // Copies the arrived packets of the answer to post_get. True: all of it is in `to`.
  bool take(std::byte* to, Bytes part, std::uint32_t number);
  // Answers in place of the kernel: 8 bytes that are not on the GPU.
  void answer(std::uint64_t value, std::uint32_t number);

 private:
  struct Split {
    unsigned lanes;
    Bytes share, last;  // of each lane, and of the last
    Bytes offset(unsigned lane) const { return lane * share; }
    unsigned bytes(unsigned lane) const { return static_cast<unsigned>(lane + 1 == lanes ? last : share); }
  };
  Split split(Bytes part, unsigned worth_a_lane) const;
  Split split_put(Bytes part) const;
  Split split_get(Bytes part) const;
  bool all_have(std::uint32_t Mailbox::* word, Bytes part, std::uint32_t number) const;
  bool take_share(Mailbox& box, std::byte* to, unsigned bytes, std::uint32_t number);

  Mailbox* boxes_;
  CourierShape shape_;
  unsigned taken_lanes_ = 0, taken_packets_ = 0;  // of the answer that arrives
};

}  // namespace waywiser
