#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/transport/ucx/ucx_library.hpp"

namespace waywiser {

// Throws device ("UCX cannot ...: reason") unless the status is good.
void check_ucx(ucs_status_t status, const std::string& what);

// A UCX context that knows the given transports and network devices only.
class UcxContext {
 public:
  // `transports` as in UCX_TLS; `devices` as in UCX_NET_DEVICES, empty for all. Throws unavailable or device.
  UcxContext(const std::string& transports, const std::string& devices);
  // For a group of `endpoints` ranks: messages and one-sided access, by whatever UCX finds best and its variables
  // allow.
  explicit UcxContext(std::size_t endpoints);
  // Nothing: the context can be made.
  static ucs_status_t try_transports(const std::string& transports, const std::string& devices);

  ucp_context_h get() const noexcept { return context_.get(); }
  // Left to the end of the process, as a worker of it cannot be destroyed.
  void abandon() noexcept { static_cast<void>(context_.release()); }

 private:
  struct Cleanup {
    void operator()(ucp_context_h context) const { ucx_library().functions().cleanup(context); }
  };
  using Owner = std::unique_ptr<ucp_context, Cleanup>;
  static ucs_status_t open(const std::string& transports, const std::string& devices, Owner& owner);
  Owner context_;
};

// One request in flight, or one that has completed at once. Freed by its owner with finish_request.
using UcxRequest = ucs_status_ptr_t;

// One worker with one endpoint, used by one thread.
class UcxWorker {
 public:
  explicit UcxWorker(const UcxContext& context);
  // Closes the endpoint, waiting a short while for what is still on its way unless abandon() was called.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  std::vector<std::uint8_t> address() const;
  void connect(const std::vector<std::uint8_t>& address);
  // Names of the transports that the endpoint uses ("posix"); empty when this UCX cannot tell.
  std::vector<std::string> transports() const;

  unsigned progress() { return ucx_library().functions().worker_progress(worker_); }
  UcxRequest send(ConstRegion source, ucp_tag_t tag);
  // Never nullptr: the request tells the length.
  UcxRequest receive(Region destination, ucp_tag_t tag);
  UcxRequest flush();
  void cancel(UcxRequest request) { ucx_library().functions().request_cancel(worker_, request); }
  // The peer is gone: do not wait for it when closing.
  void abandon() noexcept { abandoned_ = true; }

 private:
  void close_endpoint() noexcept;

  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  bool abandoned_ = false;
};

}  // namespace waywiser
