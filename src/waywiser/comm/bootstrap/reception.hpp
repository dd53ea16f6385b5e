#pragma once

#include <list>
#include <string>

#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser {

// The root's side of the meeting: accepts connections from anybody, one step at a time, and keeps those that prove to
// be ranks of the job, or that belong to this user if the listener is a Unix socket. It drops connections that are
// silent, slow, malformed or too many; the ranks do not notice.
class Reception {
 public:
  // `where`: the listener's address, for messages.
  Reception(const Launch& launch, const Introduction& mine, Descriptor listener, std::string where);

  // Waits for every rank. Throws like meet(); then all ranks that have arrived hear the reason.
  Muster wait_for_all(Deadline deadline);

 private:
  enum class Stage { greeting, proving, joining };
  struct Guest {
    std::unique_ptr<Connection> line;
    Deadline until;
    Stage stage = Stage::greeting;
    Handshake words{};
  };
  using Guests = std::list<Guest>;

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
  void tell_all(const Frame& frame, Deadline deadline);
  std::string who_is_missing() const;

  const Launch& launch_;
  Descriptor listener_;
  const std::string where_;
  Guests guests_;
  Muster muster_;
  std::vector<std::string> dismissed_;  // the first few reasons
  std::string unlike_;                  // why the first rank that does not fit does not
};

}  // namespace waywiser
