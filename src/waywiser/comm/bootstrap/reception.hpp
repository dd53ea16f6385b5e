#pragma once

#include <list>
#include <set>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/join_frame.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser {

// The side of the meeting that others come to: rank 0, and then each rank that has ranks below it in the tree. Accepts
// connections from anybody, one step at a time, and keeps those that prove to be the expected ranks of the job, or that
// belong to this user if the listener is a Unix socket. It drops connections that are silent, slow, malformed or too
// many; the ranks do not notice.
class Reception {
 public:
  // `where`: the listener's address, for messages.
  Reception(const Launch& launch, Joining joining, Descriptor listener, std::string where);

  // Of rank 0: waits until every rank has come, and then until every rank has found its place in the tree. Throws like
  // meet(); then all ranks that have arrived hear the reason.
  Muster wait_for_all(Deadline deadline);
  // Of another rank: waits for the ranks below it, which get the table.
  void wait_for_those_below(const Frame& table, Deadline deadline);
  std::map<int, std::unique_ptr<Connection>> take_lines() noexcept { return std::move(muster_.lines); }
  // All that have proved to be ranks of the job.
  std::vector<Connection*> lines() const;

 private:
  enum class Stage { greeting, proving, joining };
  struct Guest {
    std::unique_ptr<Connection> line;
    Deadline until;
    Stage stage = Stage::greeting;
    Handshake words{};
  };
  using Guests = std::list<Guest>;

  void gather(std::set<int> expected, Deadline deadline);
  void seat_all(Deadline deadline);
  void look_at_the_unseated(Deadline deadline);
  void look(Deadline deadline);
  void accept_some();
  void rest_if_exhausted();
  void dismiss_one_too_many();
  void serve(Guests::iterator guest);
  // True: the guest has become a member, and its connection has moved.
  bool hear(Guest& guest, const Frame& frame);
  void greet(Guest& guest, const Frame& frame);
  void check_proof(Guest& guest, const Frame& frame);
  void let_join(Guest& guest);
  void admit(Guest& guest, const Frame& frame);
  void dismiss(Guests::iterator guest, const std::string& why);
  void dismiss(Guests::iterator guest, const Frame& words);
  void drop_late_guests();
  void check_member(int rank);
  void tell(int rank, const Frame& frame, Deadline deadline);
  [[noreturn]] void lose(int rank, const Error& how);
  std::string who_is_missing() const;

  const Launch& launch_;
  const Joining joining_;
  const RankTree tree_;
  Descriptor listener_;
  const std::string where_;
  std::set<int> expected_;
  std::map<int, std::string> listens_;  // where the ranks that have ranks below them do
  Guests guests_;
  Muster muster_;
  std::vector<std::string> dismissed_;  // the first few reasons
  std::string unlike_;                  // why the first rank that does not fit does not
};

}  // namespace waywiser
