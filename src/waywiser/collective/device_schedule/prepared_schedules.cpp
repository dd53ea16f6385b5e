#include "waywiser/collective/device_schedule/prepared_schedules.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "waywiser/collective/device_schedule/direct_agreement.hpp"
#include "waywiser/comm/message/rank_exchange.hpp"

namespace waywiser {

// The data that one rank tells the others.
struct PreparedSchedules::Offer {
  SharedRegion landing;
  program::LandingPlan plan;
  std::array<char, 256> why_not{};
  ErrorKind kind = ErrorKind::unavailable;

  // Turns an exception into a reason.
  template <typename Function>
  void attempt(Function function) {
    if (why_not[0] != '\0') return;
    try {
      function();
    } catch (const Error& error) {
      kind = error.kind();
      std::string(error.what()).copy(why_not.data(), why_not.size() - 1);
    }
  }
};

std::vector<PreparedSchedules::Offer> PreparedSchedules::offers_of_all(RankExchange& exchange, const Offer& mine,
                                                                       int ranks) const {
  std::vector<Offer> all(static_cast<std::size_t>(ranks));
  exchange.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    all[rank].why_not.back() = all[rank].landing.gpu.back() = '\0';
    if (all[rank].why_not[0] != '\0')
      throw Error(all[rank].kind, "rank " + std::to_string(rank) + ": " + all[rank].why_not.data());
  }
  return all;
}

// All ranks close memory that no rank uses any more, then return it: the next schedule may then fit.
void PreparedSchedules::give_back_dropped(RankExchange& exchange, int ranks) {
  const DroppedList mine = dropped();
  std::vector<DroppedList> all(static_cast<std::size_t>(ranks));
  exchange.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  const std::vector<Region> closed = close_dropped(all);
  if (closed.empty()) return;
  constexpr std::byte has_closed{1};
  std::vector<std::byte> have_closed(all.size());
  exchange.all_gather(std::span(&has_closed, 1), have_closed);
  for (const Region& each : closed) buffers_.give_back(each);
}

std::shared_ptr<DeviceExecution> PreparedSchedules::prepare(RankExchange& exchange,
                                                            const std::shared_ptr<const Schedule>& schedule,
                                                            std::span<const Elements> arrays, ReduceOp op) {
  try {
    return prepare_by(algorithms_, exchange, schedule, arrays, op);
  } catch (const Error& error) {  // the same at all ranks
    if (error.kind() != ErrorKind::unavailable || !algorithms_.may_have_fewer_slots()) throw;
  }
  return prepare_by(algorithms_.with_few_slots(), exchange, schedule, arrays, op);
}

// After the direct messages are agreed on, two exchanges: first what each rank sends and takes, and its memory; then
// whether each has opened the others' memory.
std::shared_ptr<DeviceExecution> PreparedSchedules::prepare_by(const ProgramAlgorithms& algorithms,
                                                               RankExchange& exchange,
                                                               const std::shared_ptr<const Schedule>& schedule,
                                                               std::span<const Elements> arrays, ReduceOp op) {
  const int ranks = schedule->ranks;
  give_back_dropped(exchange, ranks);
  const std::unique_ptr<Stream> stream = platform_.open_stream(gpu_);
  Offer mine;
  Entry entry{++prepared_, {}, {}, {}};
  std::shared_ptr<DeviceExecution> execution;
  mine.attempt([&] {
    execution = std::make_shared<DeviceExecution>(platform_, gpu_, schedule, arrays, op, algorithms);
    execution->keep_context(kept_);
  });
  DirectAgreement direct = DirectAgreement::of_all(exchange, peers_, *schedule, execution.get(), gpu_, *stream);
  mine.attempt([&] {
    entry.opened = std::move(direct.opened);
    execution->set_direct(std::move(direct.steps), std::move(direct.why_slots));
    mine.plan = execution->plan();
    entry.own = take(*execution);
    execution->set_landing(entry.own, *stream);
    mine.landing = peers_.share(entry.own);
  });
  try {
    const std::vector<Offer> offers = offers_of_all(exchange, mine, ranks);
    mine.attempt([&] {
      std::vector<program::LandingPlan> plans;
      std::ranges::transform(offers, std::back_inserter(plans), &Offer::plan);
      execution->connect(open(entry, offers), plans, *stream, ranks_on_a_gpu_);
    });
    static_cast<void>(offers_of_all(exchange, mine, ranks));
  } catch (const Error&) {
    entry.opened.clear();
    if (entry.own.bytes != 0) buffers_.give_back(entry.own);
    throw;
  }
  entry.execution = execution;
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  return execution;
}

// As for every operation of a group, only larger messages take memory beyond the arena's limit.
Region PreparedSchedules::take(const DeviceExecution& execution) {
  const Bytes bytes = execution.landing_bytes();
  return execution.plan().longest > most_in_slice ? buffers_.take_apart(bytes) : buffers_.take_within(bytes);
}

std::vector<Region> PreparedSchedules::open(Entry& entry, const std::vector<Offer>& offers) {
  std::vector<Region> all;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const SharedRegion& landing = offers[rank].landing;
    if (static_cast<int>(rank) == rank_) {
      all.push_back(entry.own);
      continue;
    }
    entry.opened.push_back(peers_.open(landing, gpu_));
    all.push_back(entry.opened.back()->region().slice(landing.offset, landing.bytes));
  }
  return all;
}

PreparedSchedules::DroppedList PreparedSchedules::dropped() const {
  const std::lock_guard lock(mutex_);
  DroppedList listed{};
  std::size_t next = 0;
  for (const Entry& entry : entries_)
    if (entry.execution.use_count() == 1 && next < listed.size()) listed[next++] = entry.id;
  return listed;
}

std::vector<Region> PreparedSchedules::close_dropped(const std::vector<DroppedList>& lists) {
  const auto is_dropped = [&](const Entry& entry) {
    return std::ranges::all_of(lists, [&](const DroppedList& list) { return std::ranges::count(list, entry.id) != 0; });
  };
  std::vector<Region> closed;
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) {
    if (!is_dropped(entry)) return false;
    closed.push_back(entry.own);
    return true;
  });
  return closed;
}

std::optional<Error> PreparedSchedules::failure(const std::string& stopped, std::span<const int> in_job) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (auto why = entry.execution->failure(stopped, in_job)) return why;
  return {};
}

void PreparedSchedules::stop() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) entry.execution->stop();
}

void PreparedSchedules::let_go() noexcept {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) entry.opened.clear();
}

}  // namespace waywiser
