#include "waywiser/comm/session/lifeline.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"
#include "waywiser/comm/message/held_memory.hpp"

namespace waywiser {
namespace {

constexpr Seconds send_patience = 0.5;
constexpr Seconds gone_patience = 0.5;  // with a process whose connection has ended
constexpr int tick_ms = 10;
constexpr Seconds halting_patience = 0.5;  // with ranks that have left
constexpr std::chrono::microseconds halting_nap{100};

}  // namespace

Lifeline::Lifeline(int rank, Muster muster, Callbacks callbacks)
    : rank_(rank),
      callbacks_(std::move(callbacks)),
      ranks_(std::move(muster.ranks)),
      tree_{rank, static_cast<int>(ranks_.size()), muster.branches},
      others_below_(tree_.count_below()),
      lines_(std::move(muster.lines)),
      status_(rank, callbacks_.describe) {
  if (lines_.empty()) return;
  wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.open()) throw Error(ErrorKind::io, "no eventfd: " + last_system_error());
  listens_ = true;  // before the thread asks
  thread_ = started_thread([this] { listen(); });
}

Lifeline::~Lifeline() { stop(); }

void Lifeline::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  static_cast<void>(::eventfd_write(wake_.number(), 1));
  thread_.join();
  listens_ = false;
}

void Lifeline::close() {
  if (others_below_ != 0 && listens_) {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    static_cast<void>(::eventfd_write(wake_.number(), 1));
    for (const Deadline deadline = Deadline::in(halting_patience); listens_; std::this_thread::sleep_for(halting_nap))
      if (deadline.passed()) return;
  }
  stop();
  lines_.clear();
  status_.close();
}

void Lifeline::fail(ErrorKind kind, const std::string& why) {
  const ErrorKind of_all = kind == ErrorKind::interrupted ? ErrorKind::io : kind;
  set_failure(of_all, why);
  if (listens_) post(FrameKind::failed, failed_frame(of_all, why).body);
}

void Lifeline::tell_waiting(const Call& call) {
  if (!listens_) return;
  WireWriter writer;
  writer.number(static_cast<std::uint32_t>(rank_));
  write(writer, call);
  post(FrameKind::waiting, writer.bytes());
}

void Lifeline::leave() {
  if (listens_) post(FrameKind::leave, about(FrameKind::leave, rank_).body);
}

void Lifeline::part() {
  if (listens_) post(FrameKind::parted, about(FrameKind::parted, rank_).body);
}

// The connections stay open until the process has ended.
void Lifeline::end(const std::string& how) {
  if (!listens_) return;
  post(FrameKind::ending, refused_frame(how).body);
  stop();
}

bool Lifeline::finished() {
  const std::lock_guard lock(mutex_);
  return finished_ || !listens_;
}

// If these sockets stayed open here, the others would not see the parent's death.
void Lifeline::leave_to_parent(const std::string* why) noexcept {
  failure_.store(why, std::memory_order_release);
  for (const auto& [rank, line] : lines_) ::close(line->number());
  for (const int number : {wake_.number(), status_.number()})
    if (number >= 0) ::close(number);
}

void Lifeline::halt() {
  if (listens_) post(FrameKind::halted, about(FrameKind::halted, rank_).body);
}

bool Lifeline::has_halted(int rank) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (all_have_halted_ || known_to_have_halted_.contains(rank)) return true;
    first = asked_.insert(rank).second;
  }
  if (first && listens_) {
    WireWriter writer;
    writer.number(static_cast<std::uint32_t>(rank));
    writer.number(static_cast<std::uint32_t>(rank_));
    post(FrameKind::ask_halted, writer.bytes());
  }
  return false;
}

void Lifeline::set_failure(ErrorKind kind, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!reason_.empty()) return;
  reason_ = why;
  kind_.store(kind, std::memory_order_relaxed);
  failure_.store(&reason_, std::memory_order_release);
}

void Lifeline::post(FrameKind kind, std::vector<std::byte> body) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back({kind, std::move(body)});
  }
  static_cast<void>(::eventfd_write(wake_.number(), 1));
}

void Lifeline::listen() {
  for (;;) {
    std::vector<pollfd> entries{{wake_.number(), POLLIN, 0}};
    std::vector<int> ranks{-1};
    if (status_.number() >= 0) {
      entries.push_back({status_.number(), POLLIN, 0});
      ranks.push_back(-1);
    }
    for (const auto& [rank, line] : lines_) {
      entries.push_back({line->number(), POLLIN, 0});
      ranks.push_back(rank);
    }
    ::poll(entries.data(), entries.size(), patience());
    eventfd_t count = 0;
    static_cast<void>(::eventfd_read(wake_.number(), &count));
    send_posted();
    if (status_.number() >= 0) status_.answer();
    for (std::size_t i = 1; i < entries.size(); ++i) {
      const auto line = lines_.find(ranks[i]);
      if (entries[i].revents != 0 && line != lines_.end() && !look(ranks[i], *line->second)) lines_.erase(ranks[i]);
    }
    bury_the_ended();
    halt_for_caller();
    if (may_end()) break;
  }
  listens_ = false;
}

int Lifeline::patience() const noexcept { return ends_.empty() ? -1 : tick_ms; }

// Acts on a rank's end when its process has ended, and not already when its connection has: the launcher returns the
// exit code of the rank that ends first, and that must be the rank that is the cause. The kernel closes a process's
// connections before its parent can see its end.
void Lifeline::bury_the_ended() {
  for (auto entry = ends_.begin(); entry != ends_.end();) {
    const auto [rank, end] = *entry++;
    if (!end.gone_by.passed() && (lines_.contains(rank) || !has_ended(rank))) continue;
    lost(rank, end);
    ends_.erase(rank);
  }
}

// Of another machine: its connection has to be enough.
bool Lifeline::has_ended(int rank) const {
  const Introduction& own = ranks_[static_cast<std::size_t>(rank_)];
  const Introduction& other = ranks_[static_cast<std::size_t>(rank)];
  return own.machine_id != other.machine_id || own.process == other.process || process_has_ended(other.process);
}

// False: the connection has ended.
bool Lifeline::look(int rank, Connection& line) {
  try {
    while (const auto frame = line.poll_frame()) hear(rank, *frame);
    return true;
  } catch (const Error& error) {
    End& end = ends_.try_emplace(rank, End{std::string("is gone: ") + error.what()}).first->second;
    end.gone_by = Deadline::in(std::min(gone_patience, end.gone_by.left()));
    return false;
  }
}

std::string Lifeline::described(int rank) const {
  const Introduction& other = ranks_[static_cast<std::size_t>(rank)];
  return "rank " + std::to_string(rank) + " (process " + std::to_string(other.process) + " on " + other.host + ")";
}

void Lifeline::send_posted() {
  std::vector<Frame> frames;
  {
    const std::lock_guard lock(mutex_);
    frames.swap(posted_);
  }
  for (const Frame& frame : frames) send_or_hear(frame);
}

void Lifeline::send_or_hear(const Frame& frame) {
  if (frame.kind == FrameKind::failed || frame.kind == FrameKind::ending)
    pass_on(rank_, frame);
  else
    hear(rank_, frame);
}

void Lifeline::send_to(int rank, const Frame& frame) {
  const auto line = lines_.find(rank);
  if (line == lines_.end()) return;
  try {
    line->second->send(frame, Deadline::in(send_patience));
  } catch (const Error&) {  // the next read shows its end
  }
}

void Lifeline::halt_for_caller() {
  if (failure() != nullptr && callbacks_.halts()) send_or_hear(about(FrameKind::halted, rank_));
}

}  // namespace waywiser
