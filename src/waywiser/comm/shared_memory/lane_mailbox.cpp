#include "waywiser/comm/shared_memory/lane_mailbox.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_in_mailbox = 64;
constexpr const char* mailbox_name = "the mailbox of this rank";

Bytes size_for(std::size_t ranks) { return round_up_to_pages(ranks * sizeof(LaneMemory)); }

}  // namespace

MailboxUse mailbox_use() {
  const std::string text = environment("WAYWISER_MAILBOX").value_or("");
  if (text.empty()) return MailboxUse::all;
  if (text == "short") return MailboxUse::only_short;
  if (text == "off") return MailboxUse::none;
  throw Error(ErrorKind::invalid_input, "WAYWISER_MAILBOX=" + quoted(text, 40) + " must be off, short or empty");
}

LaneMailbox::LaneMailbox(std::size_t ranks) : ranks_(ranks) {
  if (ranks < 2 || ranks > most_in_mailbox || mailbox_use() == MailboxUse::none) return;
  file_ = create_shared_file(size_for(ranks), mailbox_name);
  mine_ = Mapping::of_file(file_, size_for(ranks), true, mailbox_name);
}

std::string LaneMailbox::offer() const { return file_.open() ? std::to_string(file_.number()) : ""; }

bool LaneMailbox::agreed(const Introduction& one, const Introduction& other) {
  return !one.mailbox.empty() && !other.mailbox.empty() && one.machine_id == other.machine_id;
}

LaneMemory* LaneMailbox::lane(const Mapping& mapping, std::size_t rank) {
  return reinterpret_cast<LaneMemory*>(mapping.data()) + rank;
}

LaneMemory* LaneMailbox::from(std::size_t rank) const { return lane(mine_, rank); }

LaneMemory* LaneMailbox::open(const Introduction& other, std::size_t me) {
  const std::string who = "the mailbox of rank " + std::to_string(other.rank);
  int number = -1;
  std::from_chars(other.mailbox.data(), other.mailbox.data() + other.mailbox.size(), number);
  const std::string path = "/proc/" + std::to_string(other.process) + "/fd/" + std::to_string(number);
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.open() && (errno == ENOENT || errno == ESRCH)) return nullptr;
  if (!file.open())
    throw Error(ErrorKind::unavailable,
                who + ": " + path + ": " + last_system_error() + "; WAYWISER_MAILBOX=off does without");
  check_shared_file(file, size_for(ranks_), who);
  const auto [mapping, is_new] =
      others_.insert_or_assign(other.rank, Mapping::of_file(file, size_for(ranks_), true, who));
  return lane(mapping->second, me);
}

}  // namespace waywiser
