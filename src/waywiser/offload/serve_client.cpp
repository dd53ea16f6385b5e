#include "waywiser/offload/serve_client.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace waywiser {
namespace {

class GroupChannel final : public WorkerChannel {
 public:
  explicit GroupChannel(Group& group) : group_(group) {}
  void receive(Region into) override { group_.recv({into, DataType::uint8}, client_rank, array_tag); }
  void send(ConstRegion data) override { group_.send({data, DataType::uint8}, client_rank, array_tag); }
  void reply(const ReplyFrame& frame) override { group_.send(std::span(frame), client_rank, request_tag); }

 private:
  Group& group_;
};

// Tells the state when it has changed, but not too often.
class Teller {
 public:
  explicit Teller(const std::function<void(const WorkerState&)>& tell) : tell_(tell) {}
  void look(const RemoteWorker& worker) {
    if (worker.requests() != told_ && now_seconds() > told_at_ + between) say(worker);
  }
  void say(const RemoteWorker& worker) {
    tell_({worker.used(), worker.requests()});
    told_ = worker.requests();
    told_at_ = now_seconds();
  }

 private:
  static constexpr Seconds between = 0.2;
  const std::function<void(const WorkerState&)>& tell_;
  std::uint64_t told_ = 0;
  Seconds told_at_ = 0;
};

// Polls: a request that comes soon is answered at once. Later the thread sleeps for longer and longer, an eighth of the
// time that it has waited, since a client may be silent for hours.
void wait_for_frame(Future& frame, Teller& teller, const RemoteWorker& worker) {
  constexpr Seconds polls_for = 1e-3, longest_sleep = 2e-3;
  constexpr unsigned between_looks = 64;
  const Seconds begin = now_seconds();
  for (unsigned turn = 1; !frame.done(); ++turn) {
    if (turn % between_looks != 0) continue;
    const Seconds waited = now_seconds() - begin;
    if (waited < polls_for) {
      ::sched_yield();
      continue;
    }
    turn = between_looks - 1;  // looks every time
    teller.look(worker);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(waited / 8, longest_sleep)));
  }
}

}  // namespace

void serve_client(Group& group, RemoteWorker::Setup setup, const std::function<void(const WorkerState&)>& tell) {
  GroupChannel channel(group);
  setup.patience = group.timeout();
  RemoteWorker worker(channel, std::move(setup));
  Teller teller(tell);
  for (;;) {
    std::array<std::byte, frame_bytes_of_requests> frame{};
    Future coming = group.recv(std::span(frame), client_rank, request_tag, Mode::begin);
    wait_for_frame(coming, teller, worker);
    if (!worker.serve(frame)) break;
    teller.look(worker);
  }
  teller.say(worker);
}

}  // namespace waywiser
