#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/transport/ucx/ucx_library.hpp"
#include "waywiser/transport/ucx/ucx_selection.hpp"

namespace waywiser {

// How a call of UCX ended.
class UcxStatus {
 public:
  UcxStatus(ucs_status_t code) noexcept : code_(code) {}
  bool good() const noexcept { return code_ == UCS_OK; }
  std::string text() const;

 private:
  ucs_status_t code_;
};

// Throws device ("UCX cannot ...: reason") unless the status is good.
void check_ucx(UcxStatus status, const std::string& what);

// A UCX context that knows only the given transports and network devices.
class UcxContext {
 public:
  // Throws unavailable or device.
  explicit UcxContext(const UcxSelection& selection, std::size_t endpoints = 1);
  // For a group of `endpoints` ranks: messages and one-sided access, by UCX's best transports within its variables.
  // `settings`, named without UCX_, override variables of the same name.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  explicit UcxContext(std::size_t endpoints, const Settings& settings = {});
  // Whether a context can be made, and which transports it has: UCX silently skips unknown ones.
  struct Trial {
    UcxStatus status = UCS_OK;
    std::vector<std::string> transports;         // "rc_mlx5", "cuda_copy"
    bool has(std::string_view transport) const;  // the beginning of a name is enough
    // A transport that the path needs and the context lacks; empty: none.
    std::string lacks(const UcxSelection& selection) const;
  };
  static Trial try_selection(const UcxSelection& selection);

  ucp_context_h get() const noexcept { return context_.get(); }
  // Leaves it to the end of the process, since a worker of it cannot be destroyed.
  void abandon() noexcept { static_cast<void>(context_.release()); }

 private:
  struct Cleanup {
    void operator()(ucp_context_h context) const { ucx_library().functions().cleanup(context); }
  };
  using Owner = std::unique_ptr<ucp_context, Cleanup>;
  static ucs_status_t open(const UcxSelection& selection, std::size_t endpoints, Owner& owner);
  Owner context_;
};

}  // namespace waywiser
