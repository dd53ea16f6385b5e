#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/heap/proxy/proxy_arrivals.hpp"
#include "waywiser/heap/proxy/proxy_requests.hpp"

namespace waywiser {

// The proxy of one rank of a heap: carries accesses between ranks that stores do not reach, in the turns of the
// progress thread.
class HeapProxy : public Activity {
 public:
  // `group`: of its own, for its messages; it must outlive this until end(). `memory`: of this rank, as large as those
  // of `peers`, which stores do not reach.
  HeapProxy(const Group& group, const std::shared_ptr<Platform>& platform, Region memory,
            const std::vector<int>& peers);

  // As kernels on the stream reach it; nullptr: on the host.
  one_sided::ProxyRing* ring(const Stream* stream) const;
  static void start(std::shared_ptr<HeapProxy> proxy);
  // Waits until all accesses of kernels that have ended are complete. Throws as a call of the group.
  void complete();
  // It carries nothing any more. The memory may go.
  void end() noexcept;

  bool advance() override;
  const Call& call() const override { return messages_.call(); }
  std::string progress_text() const override { return requests_->progress_text(); }
  void abandon() noexcept override;

 private:
  const ProxyMessages messages_;
  Memory ring_;
  std::unique_ptr<ProxyRequests> requests_;
  std::unique_ptr<ProxyArrivals> arrivals_;
  bool is_over_ = false;
};

}  // namespace waywiser
