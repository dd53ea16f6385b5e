#pragma once

#include "waywiser/comm/rendezvous/transfer.hpp"

namespace waywiser {

// Receives a message into GPU memory. A message out of a GPU uses the rendezvous; others go through the host.
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
  Memory landing_;
  Transfer transfer_;
  std::unique_ptr<Event> copied_;
};

}  // namespace waywiser
