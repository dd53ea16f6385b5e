#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/comm/shared_memory/mailbox_messages.hpp"

namespace waywiser::explorer {

// What one end of a shared copy is forbidden: it sees the other rank's memory in a process that does not exist.
struct Forbidden {
  bool sender_writes = false, receiver_reads = false;
};

// Two ranks of a machine: 0 sends, 1 receives. Each has its own MailboxMessages; the lanes are plain memory of this
// process. A message that is left to UCX arrives once both ranks have left it.
class Machine {
 public:
  explicit Machine(Course& course, Forbidden forbidden = {});
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void begin_send(Message& message, Tag tag, const std::vector<std::byte>& data);
  void begin_receive(Message& message, Tag tag, std::vector<std::byte>& data);
  // Gives a rank one turn. False: nothing moved.
  bool turn(unsigned rank);
  // Gives turns until the message is complete.
  void finish(unsigned rank, Message& message);
  // Gives turns until the message is complete, or cancels it: before any turn, or when the other rank has cancelled its
  // message and nothing moves. Returns when nobody holds the memory any more. False: it was cancelled.
  bool finish_or_cancel(unsigned rank, Message& message);
  // Makes the region shared memory that its caller gets back later.
  void lend(const char* name, const std::vector<std::byte>& data);
  // Neither rank awaits anything.
  bool is_quiet() const { return !messages_[0]->awaits_any() && !messages_[1]->awaits_any(); }

  static LaneMemory* lane(std::size_t from, std::size_t to);
  static std::size_t self;  // the rank that is being introduced

 private:
  // In place of UCX: copies once both ends have left the message to it. Everything that a rank did before it left the
  // message happens before everything that the other rank does after the completion.
  class Ucx final : public Carrier {
   public:
    explicit Ucx(Course& course) : course_(course) {}
    void introduce(const std::vector<Introduction>&, std::uint32_t) override {}
    bool takes(const Message&) override { return true; }
    void send(Message& message, Awaited) override { begin(message); }
    void receive(Message& message) override { begin(message); }
    bool test(Message& message) override;
    void cancel(Message& message) noexcept override;
    std::optional<Received> probe(std::uint32_t, Tag, Tag) override { return {}; }

   private:
    struct Pair {
      Message* send = nullptr;
      Message* receive = nullptr;
    };
    void begin(Message& message);

    Course& course_;
    std::map<Tag, Pair> pairs_;
  };
  void cancel(unsigned rank, Message& message);

  Course& course_;
  Ucx ucx_;
  HeldMemory held_[2];
  std::unique_ptr<MailboxMessages> messages_[2];
  bool failed_ = false;
};

std::vector<std::byte> numbered(std::size_t bytes, unsigned seed);
bool are_alike(const std::vector<std::byte>& one, const std::vector<std::byte>& other);

}  // namespace waywiser::explorer
