#pragma once

#include <memory>
#include <new>
#include <span>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/comm/session/members.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// Grows without keeping what is in it, and begins with a page: what begins with a line of the cache is copied and
// added sooner.
class ScratchMemory {
 public:
  void grow_to(std::size_t bytes) {
    if (bytes <= bytes_) return;
    data_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
    bytes_ = bytes;
  }
  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }

 private:
  static constexpr std::align_val_t alignment{4096};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, alignment); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

// Runs one rank's schedule on host memory. Can be used again after it has completed: its buffers are kept.
// Of two-sided messages: what is put goes with the signal that tells of it.
class Execution : public Activity {
 public:
  explicit Execution(Session& session) : session_(session) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  ~Execution() override {
    if (running_) session_.give_up(*this);
  }

  // The schedule and the memory must live until it is complete. Throws invalid_input when they do not fit.
  void begin(const std::shared_ptr<const Members>& members, const Call& call, std::shared_ptr<const Schedule> schedule,
             ConstElements input, Elements output);
  // A schedule that is begun again and again, with its arrays: those that are the caller's, in their order, of host
  // memory that must stay. Throws invalid_input when they do not fit.
  void bind(const std::shared_ptr<const Members>& members, std::shared_ptr<const Schedule> schedule,
            std::span<const Elements> arrays);
  // What bind() has bound, once more.
  void begin(const Call& call);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  struct Pending {
    Message message;
    const Step* step = nullptr;
    ucp_tag_t tag = 0;
    std::byte* arrival = nullptr;  // where it lands first; or what is sent, if its elements lie apart
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
  // Where the elements of a block that lie together begin.
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
  std::vector<std::byte*> arrays_;  // as the schedule counts them
  std::vector<ConstRegion> put_;    // of each step that is a put or a signal: what it puts; empty without any
  ScratchMemory scratch_, arrivals_, runs_;
  ScratchMemory own_;  // arrays of the schedule that are not the caller's, and what is put
  std::byte* next_arrival_ = nullptr;
  std::vector<Pending> pending_;  // of this round
  std::size_t open_ = 0;          // how many of them are not complete
  // Later rounds do not wait for these: the peer may come to its wait behind its own signal.
  std::vector<Pending> signals_;
  std::size_t signals_ended_ = 0;
  std::size_t next_ = 0;      // first step of the next round
  std::size_t received_ = 0;  // bytes, so far
  bool running_ = false;
};

}  // namespace waywiser
