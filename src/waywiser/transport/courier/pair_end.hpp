#pragma once

#include <atomic>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/courier/pair_mailboxes.hpp"
#include "waywiser/transport/peer_channel.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

// The common part of both ends of a courier between two processes. Messages wait in queues; every call advances them.
class PairEnd : public Transport {
 public:
  PairEnd(const Path& path, PeerChannel& peer) : name_(label(path) + ", " + pair_text(path)), peer_(peer) {}

  bool two_sided() const override { return true; }
  void finish(Stream& stream, Deadline deadline) override;

 protected:
  virtual void progress() = 0;
  virtual bool idle() const = 0;
  // Called now and then while waiting.
  virtual void look_after() {}
  // The reason of a timeout.
  virtual std::string late_text() { return "the peer process does not answer"; }

  const std::string& name() const noexcept { return name_; }
  void check(ConstRegion destination, ConstRegion source, const Stream& stream) const;
  void check(const Stream& stream) const;
  [[noreturn]] void fail_sizes(Bytes accepted, Bytes put) const;
  template <typename Ready>
  void wait(Ready ready, Deadline deadline) {
    constexpr unsigned patience_spins = 2048;
    for (unsigned spins = 1; !ready(); ++spins) {
      progress();
      if (spins % patience_spins == 0) look(deadline);
    }
  }

  static std::uint32_t read(std::uint32_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }
  static void write(std::uint32_t& word, std::uint32_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }

 private:
  void look(Deadline deadline);

  std::string name_;
  PeerChannel& peer_;
};

}  // namespace waywiser
