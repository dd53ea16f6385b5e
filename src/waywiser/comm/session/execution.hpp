#pragma once

#include <memory>
#include <span>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/comm/session/scratch_memory.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// Runs one rank's schedule on host memory. Reusable after completion: its buffers are kept.
// Uses two-sided messages: the data of a put travel with the signal that follows it.
class Execution : public Activity {
 public:
  explicit Execution(Session& session) : session_(session) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  ~Execution() override {
    if (running_) session_.give_up(*this);
  }

  // Schedule and memory must live until completion. Throws invalid_input if they do not match.
  void begin(const std::shared_ptr<const Members>& members, const Call& call, std::shared_ptr<const Schedule> schedule,
             ConstElements input, Elements output);
  // Binds what is begun repeatedly; the memory must stay.
  void bind(const std::shared_ptr<const Members>& members, const Call& call, std::shared_ptr<const Schedule> schedule,
            ConstElements input, Elements output);
  // The same for a schedule on its caller-owned arrays, in their order, in host memory. Throws invalid_input if they do
  // not match.
  void bind(const std::shared_ptr<const Members>& members, std::shared_ptr<const Schedule> schedule,
            std::span<const Elements> arrays);
  // Begins what bind() has bound.
  void begin(const Call& call);

  bool is_running() const noexcept { return running_; }
  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  struct Pending {
    Message message;
    const Step* step = nullptr;
    Tag tag = 0;
    std::byte* arrival = nullptr;  // where it first lands; or the packed data that are sent
  };

  void check_fit() const;
  void bind_arrays(std::span<const Elements> arrays);
  void bind_puts(std::byte* memory);
  std::size_t put_bytes() const;
  void restart();
  void start_round();
  void start_sends(std::span<const Step> round);
  void start_receives(std::span<const Step> round);
  void start_receive(const Step& step);
  void start_send(const Step& step);
  void start_signal(const Step& step);
  void send(Pending& pending, const std::byte* data);
  void work_locally(const Step& step);
  void work_on_runs(const Step& step);
  void reduce_into(const Block& block, const std::byte* from);
  bool finish_messages();
  bool finish_signals();
  void finish(Pending& pending);
  void finish_schedule();
  DataType type_of(const Block& block) const {
    return block.area == Area::array ? schedule_->arrays[block.array].type : call_.type;
  }
  std::byte* buffer(const Block& block) const;
  // The address of a contiguous block.
  std::byte* at(const Block& block) const;
  void gather(std::byte* to, const Block& from) const;
  void spread(const Block& to, const std::byte* from) const;
  std::size_t bytes(const Block& block) const { return block.count * bytes_of(type_of(block)); }
  std::size_t index_of(const Step& step) const { return static_cast<std::size_t>(&step - schedule_->steps.data()); }
  std::size_t outgoing_bytes(const Step& step) const {
    return step.kind == StepKind::signal ? put_[index_of(step)].bytes : bytes(step.source);
  }
  std::size_t arrival_bytes() const;

  Session& session_;
  std::shared_ptr<const Members> members_;
  Call call_;
  std::shared_ptr<const Schedule> schedule_;
  ConstRegion input_;
  Region output_;
  std::vector<std::byte*> arrays_;  // in the schedule's order
  std::vector<ConstRegion> put_;    // per step: the data of a put or signal; empty if there is none
  ScratchMemory scratch_, arrivals_, runs_;
  ScratchMemory own_;  // arrays of the executor, and received put data
  std::byte* next_arrival_ = nullptr;
  std::vector<Pending> pending_;  // of this round
  std::size_t open_ = 0;          // how many of them are not complete
  // Later rounds do not wait for these signals: the peer may reach its wait only after its own signal.
  std::vector<Pending> signals_;
  std::size_t signals_ended_ = 0;
  std::size_t next_ = 0;      // first step of the next round
  std::size_t received_ = 0;  // bytes so far
  bool running_ = false;
};

}  // namespace waywiser
