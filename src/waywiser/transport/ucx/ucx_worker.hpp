#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/transport/ucx/ucx_context.hpp"

namespace waywiser {

// What UCX has under way; nullptr: it was complete at once. Until its owner has heard of its end, or has given it up.
using UcxRequest = ucs_status_ptr_t;

class UcxWorker;

// A connection of a worker to one of another process. UCX tells it of its end: it outlives the worker.
class UcxEndpoint {
 public:
  // `peer`: whom its owner reaches by it.
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

// A worker with its context and its connections: whatever Waywiser sends by UCX goes through one. Used by one thread at
// a time.
class UcxWorker {
 public:
  // `threads`: whether it is always the same one. Throws device.
  explicit UcxWorker(UcxContext context, ucs_thread_mode_t threads = UCS_THREAD_MODE_SINGLE);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  // Nothing is waited for. With requests that were given up, or connections that UCX watches, UCX is left as it is to
  // the end of the process: 1.13 ends the process when it has to give them up.
  ~UcxWorker();

  ucp_worker_h get() const noexcept { return worker_; }
  ucp_context_h context() const noexcept { return context_.get(); }
  // By which other processes reach it.
  std::vector<std::byte> address() const;

  // `watched`: UCX looks after the connection and fails what is under way when it breaks.
  ucs_status_t connect(UcxEndpoint& endpoint, const std::vector<std::byte>& address, bool watched);
  // Names of the transports that the connection uses ("posix"); empty when this UCX cannot tell.
  std::vector<std::string> transports(const UcxEndpoint& endpoint) const;
  // The last one that broke by itself; nullptr while all is well.
  const UcxEndpoint* broken() const noexcept { return broken_; }
  // Lets what was sent arrive, then ends the connections; `progress` gives turns to all that the others may wait for.
  // False: not in time.
  template <typename Progress>
  bool close(Deadline deadline, Progress progress) noexcept {
    bool in_time = true;
    for (const UcxRequest request : begin_to_close()) {
      while (functions_->request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) progress();
      in_time = in_time && functions_->request_check_status(request) != UCS_INPROGRESS;
      functions_->request_free(request);
    }
    return in_time;
  }
  // It is left as it is when this object ends.
  void leave() noexcept { is_left_ = true; }

  unsigned progress() noexcept { return functions_->worker_progress(worker_); }
  // What they begin may be an error: UCS_PTR_IS_ERR. `done_soon`: a copy may take the place of a question to the
  // receiver (up to UCX_RNDV_SEND_NBR_THRESH or its successors, 256 KiB; else the receiver reads from 8 KiB on).
  UcxRequest send(const UcxEndpoint& to, ConstRegion source, ucp_tag_t tag, bool done_soon = false);
  // Never nullptr, so that the request can tell what came.
  UcxRequest receive(Region destination, ucp_tag_t tag, ucp_tag_t mask = ~ucp_tag_t{0});
  // Complete when all that was sent has arrived.
  UcxRequest flush();
  // Whether a message is there that nobody receives.
  bool probe(ucp_tag_t tag, ucp_tag_t mask, ucp_tag_recv_info_t& info) const;

  // UCS_INPROGRESS, or how it has ended: then there is no request any more.
  ucs_status_t test(UcxRequest& request) noexcept;
  ucs_status_t test(UcxRequest& request, ucp_tag_recv_info_t& received) noexcept;
  void cancel(UcxRequest request) noexcept;
  // True: it is over. Otherwise UCX may still use its memory until is_over(), which is not asked again afterwards.
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
  unsigned unfinished_ = 0;  // requests that were given up, and are not complete
  const UcxEndpoint* broken_ = nullptr;
  bool is_left_ = false;
};

}  // namespace waywiser
