#include "tests/explorer/machine.hpp"

#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>

extern "C" void* __real_memcpy(void*, const void*, std::size_t);  // NOLINT(bugprone-reserved-identifier)

namespace waywiser {

// Replaces lane_mailbox.cpp, which maps each lane twice: the explorer needs one address for each word.
LaneMailbox::LaneMailbox(std::size_t ranks) : ranks_(ranks) {}
std::string LaneMailbox::offer() const { return "here"; }
bool LaneMailbox::agreed(const Introduction&, const Introduction&) { return true; }
LaneMemory* LaneMailbox::from(std::size_t rank) const { return explorer::Machine::lane(rank, explorer::Machine::self); }
LaneMemory* LaneMailbox::open(const Introduction& other, std::size_t me) {
  return explorer::Machine::lane(me, other.rank);
}
MailboxUse mailbox_use() { return MailboxUse::all; }

namespace explorer {
namespace {

constexpr std::uint64_t nobody = 1u << 30;  // the number of no process

std::vector<Introduction> introductions(unsigned me, Forbidden forbidden) {
  std::vector<Introduction> ranks(2);
  for (unsigned rank = 0; rank < 2; ++rank) {
    ranks[rank].rank = rank;
    const bool cannot = rank != me && (me == 0 ? forbidden.sender_writes : forbidden.receiver_reads);
    ranks[rank].process = cannot ? nobody : static_cast<std::uint64_t>(::getpid());
  }
  return ranks;
}

}  // namespace

std::size_t Machine::self = 0;

LaneMemory* Machine::lane(std::size_t from, std::size_t to) {
  static const auto lanes = std::make_unique<std::array<std::array<LaneMemory, 2>, 2>>();
  return &(*lanes)[from][to];
}

Machine::Machine(Course& course, Forbidden forbidden) : course_(course) {
  for (unsigned rank = 0; rank < 2; ++rank) {
    LaneMemory* to = lane(rank, 1 - rank);
    std::memset(static_cast<void*>(to), 0, sizeof *to);
    course.regions.share(rank == 0 ? "the lane of the sender" : "the lane of the receiver", to, sizeof *to, 4);
  }
  for (unsigned rank = 0; rank < 2; ++rank) {
    self = rank;
    messages_[rank] = std::make_unique<MailboxMessages>(2, matched_bits, 0);
    messages_[rank]->introduce(introductions(rank, forbidden), rank);
  }
}

void Machine::lend(const char* name, const std::vector<std::byte>& data) {
  constexpr std::size_t page = 4096;
  course_.regions.share(name, data.data(), data.size(), data.size() > longest_short ? page : 1);
}

void Machine::begin_send(Message& message, ucp_tag_t tag, const std::vector<std::byte>& data) {
  message.receiving = false;
  message.peer = 1;
  message.tag = tag;
  message.bytes = data.size();
  message.from = data.data();
  messages_[0]->send(message);
}

void Machine::begin_receive(Message& message, ucp_tag_t tag, std::vector<std::byte>& data) {
  message.receiving = true;
  message.peer = 0;
  message.tag = tag;
  message.bytes = data.size();
  message.into = data.data();
  messages_[1]->receive(message);
}

bool Machine::turn(unsigned rank) {
  const bool moved = messages_[rank]->progress();
  take_over(rank);
  return moved;
}

// As in the engine: UCX copies once both ends have left the message to it. Everything that a rank did before it left
// the message happens before everything that the other rank does after the completion.
void Machine::take_over(unsigned rank) {
  while (Message* message = messages_[rank]->next_left_to_ucx()) {
    message->waiting = false;
    message->request = message;
    course_.release(&left_to_ucx_, true);
    LeftToUcx& both = left_to_ucx_[message->number];
    (message->receiving ? both.receive : both.send) = message;
    if (both.send == nullptr || both.receive == nullptr) continue;
    __real_memcpy(both.receive->into, both.send->from, both.send->bytes);
    both.receive->request = both.send->request = nullptr;
    course_.changed();
  }
}

void Machine::forget(const Message& message) {
  for (auto& [number, both] : left_to_ucx_) {
    if (both.send == &message) both.send = nullptr;
    if (both.receive == &message) both.receive = nullptr;
  }
}

void Machine::finish(unsigned rank, Message& message) {
  while (message.is_open())
    if (!turn(rank) && message.is_open()) course_.idle();
  hear_of_ucx(message);
}

void Machine::hear_of_ucx(const Message& message) {
  if (message.stage == Message::Stage::left_to_ucx) course_.acquire(&left_to_ucx_);
}

bool Machine::finish_or_cancel(unsigned rank, Message& message) {
  bool moved = true;
  while (message.is_open()) {
    if ((failed_ && !moved) || course_.choose(2, true) != 0) {
      cancel(rank, message);
      return false;
    }
    moved = turn(rank);
    if (!moved && !failed_ && message.is_open()) course_.idle();
  }
  hear_of_ucx(message);
  return true;
}

// Ranks communicate only through the shared memory.
void Machine::cancel(unsigned rank, Message& message) {
  failed_ = true;
  course_.changed();
  messages_[rank]->cancel(message, held_[rank]);
  forget(message);
  message.request = nullptr;
  while (held_[rank].holder([](std::uint32_t) { return false; }) != nullptr) course_.idle();
}

// Made once for all runs.
std::vector<std::byte> numbered(std::size_t bytes, unsigned seed) {
  static std::map<std::pair<std::size_t, unsigned>, std::vector<std::byte>> made;
  std::vector<std::byte>& data = made[{bytes, seed}];
  if (!data.empty()) return data;
  data.resize(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 31 + i / 251 + seed);
  return data;
}

bool are_alike(const std::vector<std::byte>& one, const std::vector<std::byte>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace explorer
}  // namespace waywiser
