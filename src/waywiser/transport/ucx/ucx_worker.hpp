#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/transport/ucx/ucx_library.hpp"
#include "waywiser/transport/ucx/ucx_roads.hpp"

namespace waywiser {

// Throws device ("UCX cannot ...: reason") unless the status is good.
void check_ucx(ucs_status_t status, const std::string& what);

// A UCX context that knows the given transports and network devices only.
class UcxContext {
 public:
  // Throws unavailable or device.
  explicit UcxContext(const UcxRoad& road, std::size_t endpoints = 1);
  // For a group of `endpoints` ranks: messages and one-sided access, by whatever UCX finds best and its variables
  // allow. `settings` go before variables of the same name, and are without UCX_.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  explicit UcxContext(std::size_t endpoints, const Settings& settings = {});
  // Whether a context can be made, and which transports it has: UCX passes over those that it does not know.
  struct Trial {
    ucs_status_t status = UCS_OK;
    std::vector<std::string> transports;         // "rc_mlx5", "cuda_copy"
    bool has(std::string_view transport) const;  // the beginning of a name is enough
  };
  static Trial try_road(const UcxRoad& road);

  ucp_context_h get() const noexcept { return context_.get(); }
  // Left to the end of the process, as a worker of it cannot be destroyed.
  void abandon() noexcept { static_cast<void>(context_.release()); }

 private:
  struct Cleanup {
    void operator()(ucp_context_h context) const { ucx_library().functions().cleanup(context); }
  };
  using Owner = std::unique_ptr<ucp_context, Cleanup>;
  static ucs_status_t open(const UcxRoad& road, std::size_t endpoints, Owner& owner);
  Owner context_;
};

// Of a message in host memory or a GPU's.
ucp_request_param_t parameters_for(Place place);

// By which other processes reach a worker.
std::vector<std::byte> address_of(ucp_worker_h worker);

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

  std::vector<std::byte> address() const { return address_of(worker_); }
  // `watched`: UCX looks after the connection and fails what is under way when it breaks.
  void connect(const std::vector<std::byte>& address, bool watched);
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
  // Left to the end of the process: UCX 1.13 cannot give up connections that it watches.
  void leave() noexcept { worker_ = nullptr; }

 private:
  void close_endpoint() noexcept;

  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  bool abandoned_ = false;
};

}  // namespace waywiser
