#include "waywiser/offload/gpu_work.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/device/host_stream.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_under_way = 512, most_streams = 64, most_events = 10'000, most_named = 8;
constexpr Bytes flag_bytes = 64;  // a line of the cache
constexpr Seconds short_wait = 200e-6;
constexpr unsigned turns_between_questions = 64;

}  // namespace

GpuWork::GpuWork(Platform& platform, Place gpu, Seconds patience)
    : platform_(platform),
      gpu_(gpu),
      patience_(patience),
      flags_(platform.allocate(platform.nearest_host(gpu.index), (most_streams + 1) * flag_bytes, Allocation::pinned)) {
  lanes_.push_back(open_lane());
  current_ = lanes_.front().get();
}

GpuWork::~GpuWork() {
  for (const auto& lane : lanes_) {
    try {
      settle(*lane);
    } catch (const Error&) {  // the GPU has failed
    }
  }
}

std::unique_ptr<GpuWork::Lane> GpuWork::open_lane() const {
  auto lane = std::make_unique<Lane>();
  lane->stream = platform_.open_stream(gpu_);
  lane->flag = flags_.region().slice(lanes_.size() * flag_bytes, sizeof(std::uint64_t));
  store_flag(lane->flag.data, 0);
  return lane;
}

// A stream that the client has freed is used again: what is new there runs behind what it still has.
GpuWork::Lane& GpuWork::free_lane() {
  const auto free = std::find_if(lanes_.begin() + 1, lanes_.end(), [this](const auto& lane) {
    return std::ranges::none_of(numbered_, [&](const auto& numbered) { return numbered.second == lane.get(); });
  });
  if (free != lanes_.end()) return **free;
  if (lanes_.size() > most_streams)
    throw Error(ErrorKind::invalid_input, "a client has at most " + std::to_string(most_streams) + " streams");
  lanes_.push_back(open_lane());
  return *lanes_.back();
}

void GpuWork::use(std::uint64_t stream) {
  current_ = &first();
  if (stream == 0) return;
  auto found = numbered_.find(stream);
  if (found == numbered_.end()) found = numbered_.emplace(stream, &free_lane()).first;
  current_ = found->second;
}

void GpuWork::wait_for(Lane& waiting, Lane& other) {
  end_part(waiting);
  if (!other.mark) other.mark = platform_.create_event(gpu_);
  other.stream->record(*other.mark);
  waiting.stream->wait(*other.mark);
}

void GpuWork::enter() {
  if (current_ != &first()) {
    if (current_->knows != first().enqueued) wait_for(*current_, first());
    current_->knows = first().enqueued;
  } else {
    for (const auto& lane : lanes_) {
      if (lane.get() == current_ || lane->known == lane->enqueued) continue;
      wait_for(*current_, *lane);
      lane->known = lane->enqueued;
    }
  }
  ++current_->enqueued;
}

void GpuWork::keep(std::span<const Kept> keeps) {
  Lane& lane = *current_;
  if (lane.calls >= most_under_way) settle(lane);
  enter();
  ++lane.calls;
  lane.kept.insert(lane.kept.end(), keeps.begin(), keeps.end());
}

void GpuWork::enter_part(std::string_view call, Seconds now, std::span<const Kept> keeps) {
  Lane& lane = *current_;
  keep(keeps);
  if (lane.since == 0) lane.since = now;
  if (!lane.in_part) {
    collect(lane);
    if (lane.under_way == lane.parts.size())
      lane.parts.push_back({platform_.create_timed_event(gpu_), platform_.create_timed_event(gpu_), {}});
    Part& part = lane.parts[lane.under_way];
    part.calls.clear();
    lane.stream->record(*part.begin);
    ++lane.under_way;
    lane.in_part = true;
  }
  std::vector<std::string>& calls = lane.parts[lane.under_way - 1].calls;
  if (std::ranges::find(calls, call) == calls.end()) calls.emplace_back(call);
}

void GpuWork::end_part(Lane& lane) {
  if (!std::exchange(lane.in_part, false)) return;
  lane.stream->record(*lane.parts[lane.under_way - 1].end);
}

void GpuWork::pause() {
  told_with_calls([this] {
    for (const auto& lane : lanes_) end_part(*lane);
  });
}

void GpuWork::collect(Lane& lane) {
  const std::size_t parts = std::exchange(lane.settled, 0);
  if (parts != 0) lane.parts[parts - 1].end->synchronize(Deadline::in(patience_));  // it comes behind the flag
  for (std::size_t i = 0; i < parts; ++i) device_.total += lane.parts[i].end->since(*lane.parts[i].begin);
}

void GpuWork::collect() {
  for (const auto& lane : lanes_) collect(*lane);
}

void GpuWork::add(Seconds begin, Seconds end, Seconds seconds) {
  device_.total += seconds;
  compute_.add(begin, end);
}

bool GpuWork::is_under_way() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->over != lane->enqueued; });
}

// A GPU tells an error of any stream to whoever asks it next.
std::string GpuWork::calls_under_way() const {
  std::vector<std::string_view> calls;
  for (const auto& lane : lanes_)
    for (std::size_t i = 0; i < lane->under_way; ++i)
      for (const std::string& call : lane->parts[i].calls)
        if (std::ranges::find(calls, call) == calls.end()) calls.push_back(call);
  std::string text;
  for (std::size_t i = 0; i < std::min(calls.size(), most_named); ++i)
    text += (i == 0 ? " (under way: " : ", ") + std::string(calls[i]);
  if (calls.size() > most_named) text += ", ...";
  return text.empty() ? text : text + ")";
}

template <typename Wait>
void GpuWork::told_with_calls(Wait wait) {
  try {
    wait();
  } catch (const Error& error) {
    throw Error(error.kind(), error.what() + calls_under_way());
  }
}

// A flag in host memory, which the GPU writes before it records an event, is seen 2 us before the driver tells that the
// stream is over. What has failed writes no flag: the stream tells it.
void GpuWork::wait_for_end(Lane& lane) const {
  lane.stream->write_value(lane.flag, ++lane.turn);
  end_part(lane);
  const Seconds begin = now_seconds();
  for (unsigned turn = 1; load_flag(lane.flag.data) != lane.turn; ++turn) {
    if (turn % turns_between_questions == 0 && lane.stream->done()) return;
    if (now_seconds() > begin + short_wait) return lane.stream->synchronize(Deadline::in(patience_));
  }
}

void GpuWork::settle(Lane& lane) {
  if (lane.over == lane.enqueued) return;
  const std::uint64_t enqueued = lane.enqueued;
  try {
    told_with_calls([&] { wait_for_end(lane); });
  } catch (...) {
    lane.over = enqueued;  // nobody waits for it again; it keeps its memory
    lane.under_way = 0;
    lane.since = 0;
    throw;
  }
  lane.over = lane.known = enqueued;
  if (&lane == &first())
    for (const auto& other : lanes_) other->knows = enqueued;
  lane.kept.clear();
  lane.calls = 0;
  if (lane.under_way != 0) lane.settled = std::exchange(lane.under_way, 0);
  if (const Seconds since = std::exchange(lane.since, 0); since != 0) compute_.add(since, now_seconds());
}

void GpuWork::settle() {
  if (current_ == &first()) return settle_all();
  if (current_->knows != first().enqueued) settle(first());
  settle(*current_);
}

void GpuWork::settle_all() {
  for (const auto& lane : lanes_) settle(*lane);
}

void GpuWork::record(std::uint64_t event) {
  auto found = events_.find(event);
  if (found == events_.end()) {
    if (events_.size() == most_events)
      throw Error(ErrorKind::invalid_input, "a client has at most " + std::to_string(most_events) + " events");
    found = events_.emplace(event, platform_.create_timed_event(gpu_)).first;
  }
  enter();
  current_->stream->record(*found->second);
}

void GpuWork::wait(std::uint64_t event) {
  const Event& other = find(event);
  end_part(*current_);
  enter();
  current_->stream->wait(other);
}

void GpuWork::await(std::uint64_t event) {
  const Event& other = find(event);
  told_with_calls([&] { other.synchronize(Deadline::in(patience_)); });
}

Seconds GpuWork::since(std::uint64_t later, std::uint64_t earlier) {
  await(earlier);
  await(later);
  return find(later).since(find(earlier));
}

bool GpuWork::forget(std::uint64_t number) {
  const auto found = numbered_.find(number);
  if (found == numbered_.end()) return events_.erase(number) != 0;
  if (found->second == current_) current_ = &first();
  numbered_.erase(found);
  return true;
}

Event& GpuWork::find(std::uint64_t event) const {
  const auto found = events_.find(event);
  if (found == events_.end())
    throw Error(ErrorKind::invalid_input, "event " + std::to_string(event) + " was not recorded");
  return *found->second;
}

}  // namespace waywiser
