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

Machine::Machine(Course& course, Forbidden forbidden) : course_(course), ucx_(course) {
  for (unsigned rank = 0; rank < 2; ++rank) {
    LaneMemory* to = lane(rank, 1 - rank);
    std::memset(static_cast<void*>(to), 0, sizeof *to);
    course.regions.share(rank == 0 ? "the lane of the sender" : "the lane of the receiver", to, sizeof *to, 4);
  }
  for (unsigned rank = 0; rank < 2; ++rank) {
    self = rank;
    messages_[rank] = std::make_unique<MailboxMessages>(2, matched_bits, HostMessageSizes{}, held_[rank]);
    messages_[rank]->introduce(introductions(rank, forbidden), rank);
  }
}

void Machine::lend(const char* name, const std::vector<std::byte>& data) {
  constexpr std::size_t page = 4096;
  course_.regions.share(name, data.data(), data.size(), data.size() > longest_short ? page : 1);
}

void Machine::begin_send(Message& message, Tag tag, const std::vector<std::byte>& data) {
  message.receiving = false;
  message.peer = 1;
  message.tag = tag;
  message.bytes = data.size();
  message.from = data.data();
  messages_[0]->send(message, Awaited::later);
}

void Machine::begin_receive(Message& message, Tag tag, std::vector<std::byte>& data) {
  message.receiving = true;
  message.peer = 0;
  message.tag = tag;
  message.bytes = data.size();
  message.into = data.data();
  messages_[1]->receive(message);
}

bool Machine::turn(unsigned rank) {
  const bool moved = messages_[rank]->progress();
  messages_[rank]->hand_over(ucx_);
  return moved;
}

void Machine::Ucx::begin(Message& message) {
  message.carrier = this;
  message.state = Message::State::asked;
  message.handle = nullptr;
  course_.release(&pairs_, true);
  Pair& both = pairs_[message.tag];
  (message.receiving ? both.receive : both.send) = &message;
  if (both.send == nullptr || both.receive == nullptr) return;
  __real_memcpy(both.receive->into, both.send->from, both.send->bytes);
  both.receive->info = {both.send->tag, both.send->bytes};
  both.receive->handle = both.send->handle = this;  // they are over
  course_.changed();
}

bool Machine::Ucx::test(Message& message) {
  if (message.handle == nullptr) return false;
  course_.acquire(&pairs_);
  message.state = Message::State::complete;
  return true;
}

void Machine::Ucx::cancel(Message& message) noexcept {
  message.state = Message::State::complete;
  for (auto& [tag, both] : pairs_) {
    if (both.send == &message) both.send = nullptr;
    if (both.receive == &message) both.receive = nullptr;
  }
}

void Machine::finish(unsigned rank, Message& message) {
  while (!is_complete(message))
    if (!turn(rank) && !is_complete(message)) course_.idle();
}

bool Machine::finish_or_cancel(unsigned rank, Message& message) {
  bool moved = true;
  while (!is_complete(message)) {
    if ((failed_ && !moved) || course_.choose(2, true) != 0) {
      cancel(rank, message);
      return false;
    }
    moved = turn(rank);
    if (!moved && !failed_ && !is_complete(message)) course_.idle();
  }
  return true;
}

// Ranks communicate only through the shared memory.
void Machine::cancel(unsigned rank, Message& message) {
  failed_ = true;
  course_.changed();
  messages_[rank]->cancel(message);
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
