#pragma once

#include <functional>

#include "waywiser/measure/meter.hpp"
#include "waywiser/measure/pair_buffers.hpp"
#include "waywiser/measure/spin_cpus.hpp"

namespace waywiser {

// One run that both processes perform at the same time, each in its role.
struct PairRun {
  Operation operation = Operation::latency;
  Bytes bytes = 0;
  int repetitions = 1;
  std::uint64_t seed = 0;   // not 0: verify with this pattern
  Bytes first = 0;          // slot
  SpinCpus spin_cpus = {};  // for `loaded`: the CPUs of the two threads, beside those of other pairs

  // The layout of the transfers in the buffers, the number of slots over which they rotate, and how many are in flight.
  // A verification uses every slot that may be in flight once.
  Bytes stride() const;
  Bytes slots() const;
  int in_flight() const;
  Bytes capacity() const { return stride() * slots(); }
  // Untimed transfers before the others.
  int before() const;
  // How many transfers of one direction the elapsed time covers.
  double transfers() const;
  // From the initiator to the peer only.
  bool one_way() const noexcept { return operation == Operation::streaming || operation == Operation::loaded; }
};

// Called by the initiator when both processes are ready; returns when the timing shall begin.
using Release = std::function<void(Deadline)>;

struct PairResult {
  Seconds began = 0;           // on the monotonic clock
  Seconds seconds = 0;         // elapsed
  Seconds cpu_seconds = 0;     // of this process
  Bytes mismatches = 0;        // bytes that landed wrong in this process
  std::vector<Seconds> each;   // latency of few repetitions: half of each round trip
  std::string disturbed = {};  // see Disturbance
};

// A path between two processes, opened in both directions by one of them.
class PairConnection {
 public:
  // Both processes construct it at the same time.
  PairConnection(Platform& platform, const Path& path, Role role, PeerChannel& channel, Flags& flags);

  const Path& path() const noexcept { return path_; }
  // Both processes call it at the same time, with the same run.
  PairResult run(PairBuffers& buffers, const PairRun& run, Deadline deadline, const Release& release = {});

 private:
  void ping_pong(const PairRun& run, Deadline deadline);
  void initiate(Deadline deadline);
  void reply(Deadline deadline);
  void send_window(const PairRun& run, Deadline deadline);
  void receive_window(const PairRun& run, Deadline deadline);
  void end_together(Deadline deadline);
  void both_ways(const PairRun& run, Deadline deadline);
  void perform(const PairRun& run, Deadline deadline);
  void warm_up(PairRun run, Deadline deadline);

  void put_next();
  void accept_next();
  void finish(Deadline deadline) { transport_->finish(*stream_, deadline); }

  int cpu(const PairRun& run) const;
  bool sends(const PairRun& run) const;
  bool receives(const PairRun& run) const;
  void prepare(const PairRun& run, Deadline deadline);
  Bytes check(const PairRun& run, Deadline deadline);

  Path path_;
  Role role_;
  int cpu_ = -1;  // for this pair only
  PeerChannel& channel_;
  Flags& flags_;
  std::unique_ptr<Stream> stream_;        // for the transport
  std::unique_ptr<Stream> local_stream_;  // for this process's buffers
  std::unique_ptr<Transport> transport_;
  // Slots that the transfers use in turn.
  struct Turn {
    std::vector<Region> slots;
    std::size_t next = 0;
    Region take() {
      const Region slot = slots[next];
      next = next + 1 == slots.size() ? 0 : next + 1;
      return slot;
    }
  };
  static Turn turns(Region buffer, const PairRun& run);

  Turn outgoing_, landing_, remote_;
  std::vector<Seconds> each_;
  Seconds ended_ = 0;  // of a ping-pong: when the last answer arrived
};

}  // namespace waywiser
