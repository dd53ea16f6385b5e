#pragma once

#include <memory>
#include <new>
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
  ScratchMemory scratch_, arrivals_;
  std::vector<Pending> pending_;  // of this round
  std::size_t open_ = 0;          // how many of them are not complete
  std::size_t next_ = 0;          // first step of the next round
  std::size_t received_ = 0;      // bytes, so far
  bool running_ = false;
};

}  // namespace waywiser
