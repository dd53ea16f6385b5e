#pragma once

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/members.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/comm/session.hpp"

namespace waywiser {

// Runs one rank's schedule on host memory. Can be used again after it has completed: its buffers are kept.
class Execution : public Activity {
 public:
  explicit Execution(Session& session) : session_(session) {}

  // The schedule and the memory must live until it is complete. Throws invalid_input when they do not fit.
  void begin(const std::shared_ptr<const Members>& members, const Call& call, std::shared_ptr<const Schedule> schedule,
             ConstElements input, Elements output);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  struct Pending {
    Message message;
    const Step* step = nullptr;
    ucp_tag_t tag = 0;
    std::byte* arrival = nullptr;  // where a receive_reduce lands first
  };

  void check_fit() const;
  void start_round();
  void start_sends(std::span<const Step> round);
  void start_receives(std::span<const Step> round);
  void start_receive(const Step& step, std::byte* arrival);
  void start_send(const Step& step);
  void work_locally(const Step& step);
  bool finish_messages();
  void finish(Pending& pending);
  void finish_schedule();
  const std::byte* read(const Block& block) const;
  std::byte* write(const Block& block);
  std::size_t bytes(const Block& block) const { return block.count * bytes_of(call_.type); }
  std::size_t arrival_bytes() const;

  Session& session_;
  std::shared_ptr<const Members> members_;
  Call call_;
  std::shared_ptr<const Schedule> schedule_;
  ConstRegion input_;
  Region output_;
  std::vector<std::byte> scratch_, arrivals_;
  std::vector<Pending> pending_;  // of this round
  std::size_t open_ = 0;          // how many of them are not complete
  std::size_t next_ = 0;          // first step of the next round
  std::size_t received_ = 0;      // bytes, so far
  bool running_ = false;
};

}  // namespace waywiser
