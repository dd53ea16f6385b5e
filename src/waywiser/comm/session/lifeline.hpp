#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "waywiser/base/timeout.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"
#include "waywiser/comm/bootstrap/status_socket.hpp"
#include "waywiser/comm/message/call.hpp"

namespace waywiser {

// Keeps the connections of the meeting open: through the tree of ranks, all hear of a rank that dies, fails or waits
// too long, whatever they are doing. What one rank is to know goes up to the root, and from there down to it. A thread
// listens; it sleeps unless something happens.
class Lifeline {
 public:
  // Called by the life-line's thread.
  struct Callbacks {
    std::function<std::string()> describe;  // what this rank is doing
    // The group has failed. Returns whether this rank is in no call, and so touches no memory any more.
    std::function<bool()> halts = [] { return false; };
  };
  Lifeline(int rank, Muster muster, Callbacks callbacks);
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;
  // Ends the connections: without an earlier leave(), the others treat this rank as dead.
  ~Lifeline();

  // Why the group has failed, or nullptr. Cheap enough for every turn of a wait.
  const std::string* failure() const noexcept { return failure_.load(std::memory_order_acquire); }
  // The kind of error that all ranks throw then.
  ErrorKind failure_kind() const noexcept { return kind_.load(std::memory_order_relaxed); }
  // Fails the group: all ranks hear why. Only the first reason counts. An interrupt is one of this rank only: the
  // others lose a rank.
  void fail(ErrorKind kind, const std::string& why);
  // This rank waits in `call` unusually long; the root compares it with the calls in which others wait.
  void tell_waiting(const Call& call);
  // This rank no longer needs the others; finished() says when no rank does. Until then it must still answer them.
  void leave();
  // The same for a rank that may not end well.
  void part();
  bool finished();
  // This rank's process is about to end: `how` ("ended with exit code 7"). The others hear it now and act when the
  // process is gone. Afterwards nothing is received or sent.
  void end(const std::string& how);
  // Ends the thread: nothing is received or sent any more, and no thread of this object uses OpenSSL, which ends before
  // the process does. The connections stay open. Throws nothing.
  void stop();
  // All ranks have left, and this one has halted: ends the thread and the connections, and tells nobody any more what
  // this rank is doing. A rank with others below it first waits until those have halted, since others may ask; where
  // that takes longer, its thread goes on until stop().
  void close();
  // In a forked process, whose parent keeps the group: `why` becomes the failure here, and nothing else happens.
  void leave_to_parent(const std::string* why) noexcept;
  // This rank, which has failed or left, no longer touches other ranks' memory.
  void halt();
  // Whether another rank has halted or ended. The first call asks it.
  bool has_halted(int rank);

  const std::vector<Introduction>& ranks() const noexcept { return ranks_; }

 private:
  // Of a rank that has said that its process ends, or whose connection has ended.
  struct End {
    std::string how;
    bool announced = false;
    Deadline gone_by = Deadline::in(longest_timeout);
  };

  bool is_root() const noexcept { return tree_.is_root(); }
  int above() const noexcept { return is_root() ? -1 : tree_.above(); }
  void listen();
  bool look(int rank, Connection& line);
  int patience() const noexcept;
  void bury_the_ended();
  bool has_ended(int rank) const;
  void hear(int from, const Frame& frame);
  void hear_from_below(int from, const Frame& frame, WireReader& reader);
  void hear_from_above(const Frame& frame, WireReader& reader);
  int read_rank_below(int from, WireReader& reader) const;
  void wait_in(int rank, const Call& call, const Frame& frame);
  void send_up(const Frame& frame);
  static Frame about(FrameKind kind, int rank);
  void lost(int rank, const End& end);
  void set_failure(ErrorKind kind, const std::string& why);
  void post(FrameKind kind, std::vector<std::byte> body);
  void send_posted();
  void send_or_hear(const Frame& frame);
  void send_to(int rank, const Frame& frame);
  void pass_on(int from, const Frame& frame);
  void compare(int rank, const Call& call);
  void note_parted(int rank, const Frame& frame);
  void all_have_parted();
  void note_halted(int rank);
  void halted(int rank, const Frame& frame);
  void tell_halted(int rank, int asker);
  void halt_for_caller();
  bool may_end();
  std::string described(int rank) const;

  const int rank_;
  const Callbacks callbacks_;
  std::vector<Introduction> ranks_;
  const RankTree tree_;
  const std::size_t others_below_;                    // in all generations
  std::map<int, std::unique_ptr<Connection>> lines_;  // used by the thread only
  StatusSocket status_;
  Descriptor wake_;
  std::atomic<const std::string*> failure_{nullptr};
  std::atomic<ErrorKind> kind_ = ErrorKind::io;  // written before it
  std::mutex mutex_;                             // guards the following
  std::string reason_;
  std::vector<Frame> posted_;
  bool finished_ = false, ending_ = false, closing_ = false;
  bool all_have_halted_ = false;
  std::map<int, End> ends_;                     // used by the thread only
  std::set<int> asked_, known_to_have_halted_;  // at this rank
  // Of this rank and those below it; used by the thread only.
  std::set<int> parted_;  // including those that leave if they end well
  std::set<int> halted_;
  Call told_up_;  // the last call of a collective in which a rank waits
  Deadline told_up_until_ = Deadline::in(0);
  // At the root; used by the thread only.
  std::map<int, Call> waiting_;
  std::set<int> left_;
  std::set<int> abandoned_;                  // were waiting for a rank that had left
  std::map<int, std::set<int>> ask_halted_;  // the asking ranks, by the rank asked for
  std::atomic<bool> listens_ = false;        // the thread runs
  std::thread thread_;
};

}  // namespace waywiser
