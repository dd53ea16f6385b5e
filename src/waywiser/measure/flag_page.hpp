#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "waywiser/device/descriptor.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

enum class Role { initiator, peer };

// A page that both processes map: each raises its own counter and watches the other's. Sub-microsecond, so that the
// transfers around it can be timed.
class FlagPage {
 public:
  // Nothing open: makes the page; its descriptor is for the other process.
  FlagPage(Role role, Descriptor file, PeerChannel& channel);
  ~FlagPage();
  FlagPage(const FlagPage&) = delete;
  FlagPage& operator=(const FlagPage&) = delete;

  int descriptor() const noexcept { return file_.number(); }
  void tell() noexcept { mine_->store(++told_, std::memory_order_release); }
  // Returns after the other's next tell(); calls `idle`, when there is one, at every look. Throws timeout, or io when
  // the other process has ended.
  void wait(Deadline deadline, const std::function<void()>& idle = {});

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
