#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/transport/ucx/ucx_context.hpp"

namespace waywiser {

// A UCX operation under way; nullptr: it was complete at once. It exists until its owner has seen its end, or has given
// it up.
using UcxRequest = ucs_status_ptr_t;

// Which threads use a worker, one at a time.
enum class UcxThreads { one, several };

class UcxWorker;

// A connection of a worker to a worker of another process. UCX reports its end to it, so it outlives the worker.
class UcxEndpoint {
 public:
  // `peer`: the rank at the other end.
  explicit UcxEndpoint(std::uint32_t peer = 0) : peer_(peer) {}
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;

  std::uint32_t peer() const noexcept { return peer_; }
  bool is_open() const noexcept { return handle_ != nullptr; }
  ucp_ep_h get() const noexcept { return handle_; }
  // Why it broke by itself.
  ucs_status_t problem() const noexcept { return problem_; }

 private:
  friend class UcxWorker;

  std::uint32_t peer_;
  ucp_ep_h handle_ = nullptr;
  ucs_status_t problem_ = UCS_OK;
  UcxWorker* worker_ = nullptr;
};

// A worker with its context and its connections: all of Waywiser's UCX traffic goes through one. Used by one thread at
// a time.
class UcxWorker {
 public:
  // Throws device.
  explicit UcxWorker(UcxContext context, UcxThreads threads = UcxThreads::one);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  // Does not wait. If requests were given up, or UCX watches connections, UCX is left untouched until the end of the
  // process: 1.13 would abort when it closes them.
  ~UcxWorker();

  ucp_worker_h get() const noexcept { return worker_; }
  ucp_context_h context() const noexcept { return context_.get(); }
  // The address for other processes.
  std::vector<std::byte> address() const;

  // `watched`: UCX monitors the connection and fails its requests when it breaks.
  ucs_status_t connect(UcxEndpoint& endpoint, const std::vector<std::byte>& address, bool watched);
  // Names of the transports that the connection uses ("posix"); empty if this UCX cannot tell.
  std::vector<std::string> transports(const UcxEndpoint& endpoint) const;
  // The last connection that broke by itself; nullptr: none.
  const UcxEndpoint* broken() const noexcept { return broken_; }
  // Waits until sent messages have arrived, then ends the connections; `progress` advances everything for which other
  // ranks may wait. False: not in time.
  template <typename Progress>
  bool close(Deadline deadline, const Progress& progress) noexcept {
    bool in_time = true;
    for (const UcxRequest request : begin_to_close()) {
      while (functions_->request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) progress();
      in_time = in_time && functions_->request_check_status(request) != UCS_INPROGRESS;
      functions_->request_free(request);
    }
    return in_time;
  }
  // The destructor then leaves it untouched.
  void leave() noexcept { is_left_ = true; }

  unsigned progress() noexcept { return functions_->worker_progress(worker_); }
  // The result may be an error: UCS_PTR_IS_ERR. `done_soon`: a copy may replace the rendezvous (up to
  // UCX_RNDV_SEND_NBR_THRESH or its successors, 256 KiB; otherwise the receiver reads from 8 KiB on).
  UcxRequest send(const UcxEndpoint& to, ConstRegion source, ucp_tag_t tag, bool done_soon = false);
  // Never nullptr, so that the request can describe the received message.
  UcxRequest receive(Region destination, ucp_tag_t tag, ucp_tag_t mask = ~ucp_tag_t{0});
  // Complete when all sent messages have arrived.
  UcxRequest flush();
  // Whether an unexpected message has arrived.
  bool probe(ucp_tag_t tag, ucp_tag_t mask, ucp_tag_recv_info_t& info) const;

  // UCS_INPROGRESS, or the final status: then the request no longer exists.
  ucs_status_t test(UcxRequest& request) noexcept;
  ucs_status_t test(UcxRequest& request, ucp_tag_recv_info_t& received) noexcept;
  void cancel(UcxRequest request) noexcept;
  // True: it is over. Otherwise UCX may still use its memory until is_over(), which must not be asked again afterwards.
  bool give_up(UcxRequest request) noexcept;
  bool is_over(UcxRequest given_up) noexcept;

 private:
  static void on_error(void* endpoint, ucp_ep_h handle, ucs_status_t status);
  std::vector<UcxRequest> begin_to_close() noexcept;
  bool may_be_destroyed() const noexcept;

  const UcxFunctions* functions_;
  UcxContext context_;
  ucp_worker_h worker_ = nullptr;
  std::vector<UcxEndpoint*> open_;
  unsigned watched_ = 0;     // of them
  unsigned unfinished_ = 0;  // given up and not complete
  const UcxEndpoint* broken_ = nullptr;
  bool is_left_ = false;
};

}  // namespace waywiser
