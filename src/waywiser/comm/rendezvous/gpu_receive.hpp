#pragma once

#include "waywiser/comm/rendezvous/transfer.hpp"

namespace waywiser {

// Receives a message into GPU memory. A message out of a GPU uses the rendezvous; others land in host memory. The
// receiver does not know which it will be. So long ones get page-locked memory only from a rank whose last one has
// landed: locking it costs more than all the rest of a message out of a GPU, ordinary memory that nobody touches
// nothing.
class GpuReceive : public Activity {
 public:
  GpuReceive(Session& session, const Members& members, const Call& call, int label, Elements into,
             const MessageHead* head = nullptr);
  ~GpuReceive() override;
  GpuReceive(const GpuReceive&) = delete;
  GpuReceive& operator=(const GpuReceive&) = delete;

  bool advance() override;
  const Call& call() const override { return transfer_.call(); }
  std::string progress_text() const override { return transfer_.progress_text(); }
  void abandon() noexcept override;

 private:
  Session& session_;
  Region into_;
  const int sender_;  // of the session
  const bool pinned_;
  Memory landing_;
  Transfer transfer_;
  std::unique_ptr<Event> copied_;
};

}  // namespace waywiser
