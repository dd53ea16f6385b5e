#pragma once

#include <atomic>
#include <cstdint>

#include "waywiser/device/descriptor.hpp"
#include "waywiser/measure/flags.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// A page that both processes map: each increments its own counter and polls the other's. Takes less than a microsecond,
// so that the transfers around it can be timed.
class FlagPage : public Flags {
 public:
  // Without an open file: makes the page; its descriptor is for the other process.
  FlagPage(Role role, Descriptor file, PeerChannel& channel);
  ~FlagPage() override;
  FlagPage(const FlagPage&) = delete;
  FlagPage& operator=(const FlagPage&) = delete;

  int descriptor() const noexcept { return file_.number(); }
  void tell() noexcept override { mine_->store(++told_, std::memory_order_release); }
  void wait(Deadline deadline, const std::function<void()>& idle = {}) override;

 private:
  void wait_long(Deadline deadline, const std::function<void()>& idle);

  Descriptor file_;
  PeerChannel& channel_;
  void* page_ = nullptr;
  std::atomic<std::uint64_t>* mine_ = nullptr;
  std::atomic<std::uint64_t>* theirs_ = nullptr;
  std::uint64_t told_ = 0;
  std::uint64_t heard_ = 0;
};

}  // namespace waywiser
