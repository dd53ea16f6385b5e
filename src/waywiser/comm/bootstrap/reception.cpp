#include "waywiser/comm/bootstrap/reception.hpp"

#include <poll.h>

#include <algorithm>
#include <thread>

#include "waywiser/comm/bootstrap/farewell.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

constexpr Seconds guest_patience = 5;
constexpr Seconds short_send = 0.2;
constexpr Seconds longest_look = 0.25;
constexpr std::size_t most_strangers = 64;
constexpr std::size_t most_accepted_at_once = 16;  // a guest's greeting comes within a few turns
constexpr std::size_t most_reasons = 4;
constexpr std::size_t largest_join = 80 << 10;
constexpr std::size_t largest_later_frame = 4096;
constexpr std::size_t most_named = 8;

}  // namespace

Reception::Reception(const Launch& launch, Joining joining, Descriptor listener, std::string where)
    : launch_(launch),
      joining_(std::move(joining)),
      tree_{launch.rank, launch.size, joining_.branches},
      listener_(std::move(listener)),
      where_(std::move(where)) {
  muster_.branches = tree_.branches;
  muster_.ranks.resize(static_cast<std::size_t>(launch.size));
  muster_.ranks[static_cast<std::size_t>(launch.rank)] = joining_.mine;
}

Muster Reception::wait_for_all(Deadline deadline) {
  try {
    std::set<int> all;
    for (int rank = 1; rank < launch_.size; ++rank) all.insert(rank);
    gather(std::move(all), deadline);
    WireWriter table;
    write_table(table, muster_.ranks);
    const Nonce word = random_nonce();
    table.raw(word);
    muster_.tag_key = launch_.root ? tag_key(launch_.secret, word) : tag_key(word);
    const Frame frame{FrameKind::table, table.bytes()};
    for (const int rank : tree_.below()) tell(rank, frame, deadline);
    seat_all(deadline);
  } catch (const Error& error) {
    say_farewell(lines(), error.what());
    throw;
  }
  return std::move(muster_);
}

void Reception::wait_for_those_below(const Frame& table, Deadline deadline) {
  const std::vector<int> below = tree_.below();
  gather({below.begin(), below.end()}, deadline);
  for (const int rank : below) tell(rank, table, deadline);
}

std::vector<Connection*> Reception::lines() const {
  std::vector<Connection*> all;
  for (const auto& [rank, line] : muster_.lines) all.push_back(line.get());
  for (const Guest& guest : guests_)
    if (guest.stage == Stage::joining) all.push_back(guest.line.get());
  return all;
}

void Reception::gather(std::set<int> expected, Deadline deadline) {
  expected_ = std::move(expected);
  while (muster_.lines.size() < expected_.size()) {
    if (deadline.passed()) throw Error(ErrorKind::timeout, who_is_missing());
    look(deadline);
    throw_if_interrupted();
    drop_late_guests();
  }
}

// Tells the others which rank is above them. They say that they have left when they and those below them have the
// table; until then, this rank sees it if they end.
void Reception::seat_all(Deadline deadline) {
  for (const auto& [rank, line] : muster_.lines) {
    const int above = tree_.above_of(rank);
    if (above == 0) continue;
    WireWriter writer;
    writer.text(listens_[above]);
    tell(rank, {FrameKind::branch, writer.bytes()}, deadline);
  }
  const std::size_t neighbours = tree_.below().size();
  while (muster_.lines.size() > neighbours) {
    if (deadline.passed())
      throw Error(ErrorKind::timeout, std::to_string(muster_.lines.size() - neighbours) + " of " +
                                          std::to_string(launch_.size) +
                                          " ranks did not reach the rank above them in time");
    look_at_the_unseated(deadline);
    throw_if_interrupted();
  }
}

// The neighbours go on: what they send is not for now, only their end is.
void Reception::look_at_the_unseated(Deadline deadline) {
  std::vector<pollfd> entries;
  std::vector<int> ranks;
  for (const auto& [rank, line] : muster_.lines) {
    ranks.push_back(rank);
    entries.push_back({line->number(), static_cast<short>(tree_.above_of(rank) == 0 ? POLLRDHUP : POLLIN), 0});
  }
  const Seconds patience = std::min(deadline.left(), longest_look);
  if (::poll(entries.data(), entries.size(), static_cast<int>(patience * 1e3) + 1) <= 0) return;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (entries[i].revents != 0) check_member(ranks[i]);
}

void Reception::look(Deadline deadline) {
  std::vector<pollfd> entries{{listener_.number(), POLLIN, 0}};
  for (const Guest& guest : guests_) entries.push_back({guest.line->number(), POLLIN, 0});
  std::vector<int> members;
  for (const auto& [rank, line] : muster_.lines) {
    members.push_back(rank);
    entries.push_back({line->number(), POLLIN, 0});
  }
  const Seconds patience = std::min(deadline.left(), longest_look);
  if (::poll(entries.data(), entries.size(), static_cast<int>(patience * 1e3) + 1) <= 0) return;
  const std::size_t first_member = entries.size() - members.size();
  auto guest = guests_.begin();
  for (std::size_t i = 1; i < first_member; ++i) {
    const auto current = guest++;
    if (entries[i].revents != 0) serve(current);
  }
  if (!unlike_.empty()) throw Error(ErrorKind::invalid_input, unlike_);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (entries[first_member + i].revents != 0) check_member(members[i]);
  if (entries.front().revents != 0) accept_some();
}

void Reception::accept_some() {
  for (std::size_t i = 0; i < most_accepted_at_once; ++i) {
    Descriptor socket = accept_one(listener_);
    if (!socket.open()) return rest_if_exhausted();
    if (!launch_.root && !is_of_this_user(socket)) continue;
    guests_.push_back({std::make_unique<Connection>(std::move(socket), largest_stranger_frame),
                       Deadline::in(guest_patience),
                       Stage::greeting,
                       {}});
    if (guests_.size() > most_strangers + muster_.ranks.size()) dismiss_one_too_many();
  }
}

void Reception::rest_if_exhausted() {
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (!exhausted) return;
  if (!guests_.empty()) dismiss_one_too_many();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// Drops the oldest connection that has sent nothing: a rank sends at once.
void Reception::dismiss_one_too_many() {
  const auto silent = std::ranges::find(guests_, Stage::greeting, &Guest::stage);
  dismiss(silent == guests_.end() ? guests_.begin() : silent, {FrameKind::later, {}});
}

void Reception::serve(Guests::iterator guest) {
  try {
    while (const auto frame = guest->line->poll_frame())
      if (hear(*guest, *frame)) {
        guests_.erase(guest);
        return;
      }
  } catch (const Error& error) {
    dismiss(guest, error.what());
  }
}

bool Reception::hear(Guest& guest, const Frame& frame) {
  switch (guest.stage) {
    case Stage::greeting: greet(guest, frame); return false;
    case Stage::proving: check_proof(guest, frame); return false;
    case Stage::joining: admit(guest, frame); return true;
  }
  return false;
}

void Reception::greet(Guest& guest, const Frame& frame) {
  const Hello hello = read_hello(frame);
  guest.words = {hello.rank, hello.nonce, random_nonce()};
  if (hello.rank >= static_cast<std::uint32_t>(launch_.size) || !expected_.contains(static_cast<int>(hello.rank)))
    throw Error(ErrorKind::invalid_input, "rank " + std::to_string(hello.rank) + " of a group of " +
                                              std::to_string(launch_.size) + " cannot join rank " +
                                              std::to_string(launch_.rank));
  if (!launch_.root) return let_join(guest);  // the kernel has authenticated it
  guest.line->send(FrameKind::challenge, guest.words.root, Deadline::in(short_send));
  guest.stage = Stage::proving;
}

void Reception::check_proof(Guest& guest, const Frame& frame) {
  const std::string who = "rank " + std::to_string(guest.words.rank);
  if (frame.kind != FrameKind::proof || !equal(read_digest(frame), guest.words.member_proof(launch_.secret)))
    throw Error(ErrorKind::invalid_input, who + " has another secret than rank " + std::to_string(launch_.rank));
  let_join(guest);
  guest.line->send(FrameKind::welcome, guest.words.root_proof(launch_.secret), Deadline::in(short_send));
  guest.line->seal(guest.words.root_seal(launch_.secret));
}

void Reception::let_join(Guest& guest) {
  if (muster_.lines.contains(static_cast<int>(guest.words.rank)))
    throw Error(ErrorKind::invalid_input, "rank " + std::to_string(guest.words.rank) + " has joined already");
  guest.line->set_limit(largest_join);
  guest.stage = Stage::joining;
}

// It is a rank of this job: any error from now on is an error of the job, and the rank hears of it as a member.
void Reception::admit(Guest& guest, const Frame& frame) {
  WireReader reader(frame.body, "introduction of rank " + std::to_string(guest.words.rank));
  Joining joining = read_joining(reader);
  const int rank = static_cast<int>(guest.words.rank);
  if (frame.kind != FrameKind::join || joining.mine.rank != guest.words.rank || muster_.lines.contains(rank))
    reader.refuse("it is not the rank that it claims to be");
  guest.line->set_limit(largest_later_frame);
  if (!launch_.root) guest.line->send(FrameKind::welcome, {}, Deadline::in(short_send));
  muster_.lines[rank] = std::move(guest.line);
  if (unlike_.empty()) unlike_ = difference(joining_, joining);
  listens_[rank] = std::move(joining.listens);
  muster_.ranks[guest.words.rank] = std::move(joining.mine);
}

void Reception::dismiss(Guests::iterator guest, const std::string& why) {
  if (dismissed_.size() < most_reasons) dismissed_.push_back(why);
  dismiss(guest, refused_frame(why));
}

void Reception::dismiss(Guests::iterator guest, const Frame& words) {
  try {
    guest->line->send(words, Deadline::in(0));
  } catch (const Error&) {  // it does not listen
  }
  guests_.erase(guest);
}

void Reception::drop_late_guests() {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const auto current = guest++;
    if (current->until.passed()) dismiss(current, "it did not introduce itself in time");
  }
}

// A member sends nothing until it has the table, and then that it has left, or why it cannot go on: any other event is
// the end of its connection.
void Reception::check_member(int rank) {
  std::optional<Frame> frame;
  try {
    frame = muster_.lines.at(rank)->poll_frame();
  } catch (const Error& error) {
    lose(rank, error);
  }
  if (!frame) return;
  if (frame->kind == FrameKind::refused) throw Error(ErrorKind::io, reason_in(*frame));
  if (frame->kind == FrameKind::leave && tree_.above_of(rank) != tree_.rank) muster_.lines.erase(rank);
}

void Reception::tell(int rank, const Frame& frame, Deadline deadline) {
  try {
    muster_.lines.at(rank)->send(frame, deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io && error.kind() != ErrorKind::timeout) throw;
    lose(rank, error);
  }
}

// It may have said why before.
void Reception::lose(int rank, const Error& how) {
  std::string why = how.kind() == ErrorKind::timeout ? "" : last_words(*muster_.lines.at(rank), muster_.ranks.size());
  if (why.empty()) why = "rank " + std::to_string(rank) + " while the group formed: " + how.what();
  throw Error(ErrorKind::io, why);
}

std::string Reception::who_is_missing() const {
  std::string missing;
  std::size_t count = 0;
  for (const int rank : expected_) {
    if (muster_.lines.contains(rank)) continue;
    if (++count <= most_named) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (count > most_named) missing += ", ...";
  std::string text = std::to_string(count) + " of " + std::to_string(launch_.size) + " ranks did not come to " +
                     where_ + " in time: " + missing;
  for (const std::string& why : dismissed_) text += "; refused: " + why;
  return text;
}

}  // namespace waywiser
