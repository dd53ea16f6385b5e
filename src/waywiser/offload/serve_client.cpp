#include "waywiser/offload/serve_client.hpp"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/offload/secret_pair.hpp"

namespace waywiser {
namespace {

class GroupChannel final : public WorkerChannel {
 public:
  GroupChannel(Group& group, std::string plain_at) : group_(group), plain_at_(std::move(plain_at)) {}
  void receive(Region into) override { arrays().recv({into, DataType::uint8}, client_rank, array_tag); }
  void send(ConstRegion data) override { arrays().send({data, DataType::uint8}, client_rank, array_tag); }
  void receive_text(Region into) override { group_.recv({into, DataType::uint8}, client_rank, array_tag); }
  void send_text(ConstRegion data) override { group_.send({data, DataType::uint8}, client_rank, array_tag); }
  void reply(const ReplyFrame& frame) override { group_.send(std::span(frame), client_rank, request_tag); }
  void open_plain(const std::string& secret, const std::function<void(const std::string& address)>& announce) override {
    if (plain_at_.empty())
      throw Error(ErrorKind::unavailable, "this server encrypts them: it was started without --data-plain");
    if (plain_) throw Error(ErrorKind::invalid_input, "they go that way already");
    SecretPair pair;
    pair.purpose = "plain";
    pair.secret = secret;
    pair.root.host = plain_at_;
    pair.encrypt = false;
    pair.platform = group_.platform();
    plain_.emplace(pair.wait(announce));
    plain_->set_timeout(group_.timeout());
  }
  Descriptor open_file_of_client(std::uint64_t number) override {
    if (!same_machine(group_, client_rank)) throw Error(ErrorKind::unavailable, "the client is on another machine");
    const std::string path =
        "/proc/" + std::to_string(process_of(group_, client_rank)) + "/fd/" + std::to_string(number);
    Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.open()) throw Error(ErrorKind::device, path + ": " + last_system_error());
    return file;
  }
  void close() {
    if (plain_) plain_->close();
  }

 private:
  Group& arrays() { return plain_ ? *plain_ : group_; }

  Group& group_;
  const std::string plain_at_;
  std::optional<Group> plain_;
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

void serve_client(Group& group, RemoteWorker::Setup setup, const std::function<void(const WorkerState&)>& tell,
                  const std::string& plain_at) {
  GroupChannel channel(group, plain_at);
  setup.patience = group.timeout();
  RemoteWorker worker(channel, std::move(setup));
  Teller teller(tell);
  for (;;) {
    std::array<std::byte, frame_bytes_of_requests> frame{};
    Future coming = group.recv(std::span(frame), client_rank, request_tag, Mode::begin);
    if (!coming.done()) worker.pause();
    wait_for_frame(coming, teller, worker);
    if (!worker.serve(frame)) break;
    teller.look(worker);
  }
  teller.say(worker);
  channel.close();
}

}  // namespace waywiser
