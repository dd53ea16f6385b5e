#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/comm/shared_memory/mailbox_messages.hpp"

namespace waywiser::explorer {

// What one end of a shared copy cannot do: the other one's memory is where no process is.
struct Forbidden {
  bool sender_writes = false, receiver_reads = false;
};

// The two ranks of a machine, 0 sends and 1 receives, each with its own MailboxMessages, on lanes that are plain memory
// of this process. What they leave to UCX comes when both have done so.
class Machine {
 public:
  explicit Machine(Course& course, Forbidden forbidden = {});
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void begin_send(Message& message, ucp_tag_t tag, const std::vector<std::byte>& data);
  void begin_receive(Message& message, ucp_tag_t tag, std::vector<std::byte>& data);
  // A turn of a rank. False: nothing moved.
  bool turn(unsigned rank);
  // Turns until it is complete.
  void finish(unsigned rank, Message& message);
  // Turns until it is complete, or is cancelled: before any of them, or when the other rank has cancelled its own and
  // nothing moves. It returns when nobody holds the memory any more. False: it was cancelled.
  bool finish_or_cancel(unsigned rank, Message& message);
  // So that a region is memory whose caller is told when it has it back.
  void lend(const char* name, const std::vector<std::byte>& data);
  // Neither rank awaits anything.
  bool is_quiet() const { return !messages_[0]->awaits_any() && !messages_[1]->awaits_any(); }

  static LaneMemory* lane(std::size_t from, std::size_t to);
  static std::size_t self;  // the rank that is being introduced

 private:
  struct LeftToUcx {
    Message* send = nullptr;
    Message* receive = nullptr;
  };
  void take_over(unsigned rank);
  void cancel(unsigned rank, Message& message);
  void hear_of_ucx(const Message& message);
  void forget(const Message& message);

  Course& course_;
  std::unique_ptr<MailboxMessages> messages_[2];
  HeldMemory held_[2];
  bool failed_ = false;
  std::map<std::uint32_t, LeftToUcx> left_to_ucx_;  // by number
};

std::vector<std::byte> numbered(std::size_t bytes, unsigned seed);
bool are_alike(const std::vector<std::byte>& one, const std::vector<std::byte>& other);

}  // namespace waywiser::explorer
