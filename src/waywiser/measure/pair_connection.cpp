#include "waywiser/measure/pair_connection.hpp"

#include <time.h>

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/measure/rotation.hpp"

namespace waywiser {
namespace {

constexpr Bytes slot_alignment = 64;

Seconds cpu_seconds_of_process() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + 1e-9 * static_cast<Seconds>(time.tv_nsec);
}

std::uint64_t slot_seed(const PairRun& run, Role sender, Bytes slot) {
  return run.seed + 2 * slot + (sender == Role::initiator ? 0 : 1);
}

}  // namespace

Bytes PairRun::stride() const {
  return std::max(slot_alignment, (bytes + slot_alignment - 1) / slot_alignment * slot_alignment);
}

Bytes PairRun::slots() const {
  const Rotation rotating = rotation(operation, stride());
  return static_cast<Bytes>(seed == 0 ? rotating.slots : std::min(rotating.slots, rotating.transfers));
}

int PairRun::in_flight() const { return rotation(operation, stride()).transfers; }

int PairRun::before() const { return seed == 0 ? waywiser::warm_up(repetitions, bytes) : 0; }

double PairRun::transfers() const { return repetitions * (operation == Operation::latency ? 2.0 : 1.0); }

PairConnection::PairConnection(Platform& platform, const Path& path, Role role, PeerChannel& channel, Flags& flags)
    : path_(path), role_(role), channel_(channel), flags_(flags) {
  const SpinCpus spin_cpus = choose_spin_cpus(spin_cpu_choices(path));
  if (platform.backend() != "virtual_gpu") cpu_ = role == Role::initiator ? spin_cpus.source : spin_cpus.destination;
  const Path out = outgoing_path(path, role);
  stream_ = platform.open_stream(find_mechanism(out.mechanism)->works_on(out));
  local_stream_ = platform.open_stream(out.source);
  transport_ = open_transport(out, {platform, &channel});
}

bool PairConnection::sends(const PairRun& run) const { return role_ == Role::initiator || !run.one_way(); }

bool PairConnection::receives(const PairRun& run) const { return role_ == Role::peer || !run.one_way(); }

// The core of this process's thread while it is timed; -1: the system chooses it.
int PairConnection::cpu(const PairRun& run) const {
  if (run.seed != 0) return -1;
  if (run.operation != Operation::loaded) return cpu_;
  return role_ == Role::initiator ? run.spin_cpus.source : run.spin_cpus.destination;
}

PairResult PairConnection::run(PairBuffers& buffers, const PairRun& run, Deadline deadline, const Release& release) {
  outgoing_ = turns(buffers.outgoing(), run);
  landing_ = turns(buffers.landing(), run);
  remote_ = turns(buffers.remote(), run);
  if (run.seed != 0) prepare(run, deadline);
  const OnCpu bound(cpu(run));
  if (run.before() > 0) warm_up(run, deadline);
  PairResult result;
  each_.clear();
  ended_ = 0;
  if (role_ == Role::peer) flags_.tell();
  if (role_ == Role::initiator) flags_.wait(deadline);
  if (release && role_ == Role::initiator) release(deadline);
  const Seconds cpu_before = cpu_seconds_of_process();
  result.began = now_seconds();
  perform(run, deadline);
  result.seconds = (ended_ > 0 ? ended_ : now_seconds()) - result.began;
  result.cpu_seconds = cpu_seconds_of_process() - cpu_before;
  transport_->rest();
  if (run.seed != 0) result.mismatches = check(run, deadline);
  result.each = each_;
  return result;
}

void PairConnection::warm_up(PairRun run, Deadline deadline) {
  run.repetitions = run.before();
  perform(run, deadline);
}

void PairConnection::perform(const PairRun& run, Deadline deadline) {
  if (run.operation == Operation::latency) return ping_pong(run, deadline);
  if (run.operation == Operation::bidirectional) return both_ways(run, deadline);
  return role_ == Role::initiator ? send_window(run, deadline) : receive_window(run, deadline);
}

PairConnection::Turn PairConnection::turns(Region buffer, const PairRun& run) {
  Turn turn;
  for (Bytes slot = 0; slot < run.slots(); ++slot) turn.slots.push_back(buffer.slice(slot * run.stride(), run.bytes));
  return turn;
}

void PairConnection::put_next() { transport_->put(remote_.take(), outgoing_.take(), *stream_); }

void PairConnection::accept_next() {
  if (transport_->two_sided()) transport_->accept(landing_.take(), *stream_);
}

void PairConnection::ping_pong(const PairRun& run, Deadline deadline) {
  const bool singly = role_ == Role::initiator && run.repetitions <= most_timed_singly;
  Seconds before = singly ? now_seconds() : 0;
  for (int i = 0; i < run.repetitions; ++i) {
    role_ == Role::initiator ? initiate(deadline) : reply(deadline);
    if (!singly) continue;
    const Seconds after = now_seconds();
    each_.push_back((after - before) / 2);
    before = after;
  }
  finish(deadline);
  ended_ = now_seconds();
  if (transport_->two_sided()) end_together(deadline);
}

// One-sided: the flag says that the bytes have arrived. Two-sided: the messages themselves do.
void PairConnection::initiate(Deadline deadline) {
  accept_next();
  put_next();
  finish(deadline);
  if (transport_->two_sided()) return;
  flags_.tell();
  flags_.wait(deadline);
}

void PairConnection::reply(Deadline deadline) {
  accept_next();
  transport_->two_sided() ? finish(deadline) : flags_.wait(deadline);
  put_next();
  if (transport_->two_sided()) return;
  finish(deadline);
  flags_.tell();
}

// A stream takes any number of puts; messages are sent and accepted in windows.
void PairConnection::send_window(const PairRun& run, Deadline deadline) {
  const int window = run.in_flight();
  for (int i = 0; i < run.repetitions; ++i) {
    put_next();
    if (transport_->two_sided() && (i + 1) % window == 0) finish(deadline);
  }
  finish(deadline);
  end_together(deadline);
}

void PairConnection::receive_window(const PairRun& run, Deadline deadline) {
  const int window = run.in_flight();
  for (int i = 0; i < run.repetitions && transport_->two_sided(); ++i) {
    accept_next();
    if ((i + 1) % window == 0) finish(deadline);
  }
  if (transport_->two_sided()) finish(deadline);
  end_together(deadline);
}

// Messages that have left here may still need this process's progress to arrive.
void PairConnection::end_together(Deadline deadline) {
  flags_.tell();
  if (!transport_->two_sided()) return flags_.wait(deadline);
  flags_.wait(deadline, [&] { finish(deadline); });
}

void PairConnection::both_ways(const PairRun& run, Deadline deadline) {
  const int window = run.in_flight();
  for (int first = 0; first < run.repetitions; first += window) {
    const int last = std::min(run.repetitions, first + window);
    for (int i = first; i < last; ++i) accept_next();
    for (int i = first; i < last; ++i) put_next();
    if (transport_->two_sided()) finish(deadline);
  }
  finish(deadline);
  end_together(deadline);
}

void PairConnection::prepare(const PairRun& run, Deadline deadline) {
  for (Bytes slot = 0; slot < run.slots(); ++slot) {
    const std::uint64_t seed = slot_seed(run, role_, slot);
    if (sends(run)) fill_pattern(*local_stream_, outgoing_.slots[slot], seed);
    if (receives(run)) fill_pattern(*local_stream_, landing_.slots[slot], ~seed);
  }
  local_stream_->synchronize(deadline);
  channel_.exchange({{"ready", true}}, deadline);
}

Bytes PairConnection::check(const PairRun& run, Deadline deadline) {
  if (!receives(run)) return 0;
  const Role sender = role_ == Role::initiator ? Role::peer : Role::initiator;
  Bytes wrong = 0;
  for (Bytes slot = 0; slot < run.slots(); ++slot)
    wrong += count_mismatches(*local_stream_, landing_.slots[slot], slot_seed(run, sender, slot), deadline);
  return wrong;
}

}  // namespace waywiser
