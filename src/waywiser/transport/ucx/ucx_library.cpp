#include "waywiser/transport/ucx/ucx_library.hpp"

#include <ucs/debug/log_def.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/set_environment.hpp"
#include "waywiser/transport/ucx/libucp_choice.hpp"

namespace waywiser {
namespace {

constexpr unsigned oldest_major = 1, oldest_minor = 13;

// UCX writes to standard output, which is for results. Its warnings repeat what a call returns as a status.
ucs_log_func_rc_t log_to_standard_error(const char*, unsigned, const char*, ucs_log_level_t level,
                                        const ucs_log_component_config_t* component, const char* format, va_list list) {
  if (level == UCS_LOG_LEVEL_WARN || level > component->log_level) return UCS_LOG_FUNC_RC_STOP;
  std::fputs("ucx: ", stderr);
  std::vfprintf(stderr, format, list);
  std::fputc('\n', stderr);
  return UCS_LOG_FUNC_RC_STOP;
}

template <typename Pointer>
void find_one(const DynamicLibrary& library, Pointer& slot, const char* symbol, std::string& missing) {
  slot = library.find<std::remove_pointer_t<Pointer>>(symbol);
  if (slot == nullptr && missing.empty()) missing = symbol;
}

void find_one_sided(const DynamicLibrary& library, UcxFunctions& functions, std::string& missing) {
  find_one(library, functions.mem_map, "ucp_mem_map", missing);
  find_one(library, functions.mem_unmap, "ucp_mem_unmap", missing);
  find_one(library, functions.rkey_pack, "ucp_rkey_pack", missing);
  find_one(library, functions.rkey_buffer_release, "ucp_rkey_buffer_release", missing);
  find_one(library, functions.ep_rkey_unpack, "ucp_ep_rkey_unpack", missing);
  find_one(library, functions.rkey_destroy, "ucp_rkey_destroy", missing);
  find_one(library, functions.put_nbx, "ucp_put_nbx", missing);
  find_one(library, functions.get_nbx, "ucp_get_nbx", missing);
}

// Names the first function that is not there.
std::string find_functions(const DynamicLibrary& library, UcxFunctions& functions) {
  std::string missing;
  const auto find = [&]<typename Pointer>(Pointer& slot, const char* symbol) {
    find_one(library, slot, symbol, missing);
  };
  find(functions.get_version, "ucp_get_version");
  find(functions.get_version_string, "ucp_get_version_string");
  find(functions.config_read, "ucp_config_read");
  find(functions.config_modify, "ucp_config_modify");
  find(functions.config_release, "ucp_config_release");
  find(functions.init_version, "ucp_init_version");
  find(functions.cleanup, "ucp_cleanup");
  find(functions.context_print_info, "ucp_context_print_info");
  find(functions.worker_create, "ucp_worker_create");
  find(functions.worker_destroy, "ucp_worker_destroy");
  find(functions.worker_progress, "ucp_worker_progress");
  find(functions.worker_get_address, "ucp_worker_get_address");
  find(functions.worker_release_address, "ucp_worker_release_address");
  find(functions.worker_flush_nbx, "ucp_worker_flush_nbx");
  find(functions.ep_create, "ucp_ep_create");
  find(functions.ep_close_nbx, "ucp_ep_close_nbx");
  find(functions.tag_send_nbx, "ucp_tag_send_nbx");
  find(functions.tag_recv_nbx, "ucp_tag_recv_nbx");
  find(functions.tag_probe_nb, "ucp_tag_probe_nb");
  find(functions.tag_recv_request_test, "ucp_tag_recv_request_test");
  find(functions.request_check_status, "ucp_request_check_status");
  find(functions.request_cancel, "ucp_request_cancel");
  find(functions.request_free, "ucp_request_free");
  find(functions.status_string, "ucs_status_string");
  find_one_sided(library, functions, missing);
  functions.ep_query = library.find<std::remove_pointer_t<decltype(functions.ep_query)>>("ucp_ep_query");
  return missing;
}

// UCX reads these variables only when it is opened; those of the user win. While it lives, they say that UCX asks CUDA
// what each address is: its cache takes GPU memory that its hooks have not seen for host memory, and the CPU would read
// it. Without `hooks`, that it replaces no function.
class OpeningVariables {
 public:
  explicit OpeningVariables(bool hooks) {
    set("UCX_MEMTYPE_CACHE", "n");
    if (hooks) return;
    set("UCX_MEM_MMAP_HOOK_MODE", "none");
    set("UCX_MEM_CUDA_HOOK_MODE", "none");
  }
  OpeningVariables(const OpeningVariables&) = delete;
  OpeningVariables& operator=(const OpeningVariables&) = delete;
  ~OpeningVariables() {
    for (const char* name : set_) remove_from_environment(name);
  }

 private:
  void set(const char* name, const char* value) {
    if (environment(name)) return;
    set_environment(name, value);
    set_.push_back(name);
  }

  std::vector<const char*> set_;
};

// While it is loaded, UCX takes SIGHUP for an attached debugger: a session that closes would no longer end this
// process.
class SameHangup {
 public:
  SameHangup() { ::sigaction(SIGHUP, nullptr, &before_); }
  SameHangup(const SameHangup&) = delete;
  SameHangup& operator=(const SameHangup&) = delete;
  ~SameHangup() {
    if (!environment("UCX_DEBUG_SIGNO")) ::sigaction(SIGHUP, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
};

}  // namespace

UcxLibrary::UcxLibrary(bool keeps_registrations) {
  const OpeningVariables while_opened(keeps_registrations);
  const SameHangup after;
  const LibucpChoice choice = choose_libucp(libucp_places());
  load(choice.path.empty() ? "libucp.so.0" : choice.path);  // the loader may know more folders
  if (choice.origin == "mapped" || !usable()) return;
  path_ = mapped_libucp(maps_of_this_process());
  // Nobody else uses this copy, so its messages are ours to redirect.
  const DynamicLibrary library({path_});
  if (auto* push = library.find<decltype(ucs_log_push_handler)>("ucs_log_push_handler")) push(log_to_standard_error);
}

void UcxLibrary::load(const std::string& name) {
  path_ = name;
  const DynamicLibrary library({name});
  if (!library.loaded()) {
    why_not_ = library.why_not() + " (pip install libucx-cu13, or name a libucp.so.0 in WAYWISER_LIBUCP)";
    return;
  }
  if (const std::string missing = find_functions(library, functions_); !missing.empty()) {
    why_not_ = name + " is no usable UCX: it has no " + missing;
    return;
  }
  version_ = functions_.get_version_string();
  unsigned major = 0, minor = 0, release = 0;
  functions_.get_version(&major, &minor, &release);
  if (major != oldest_major || minor < oldest_minor)
    why_not_ = text() + " cannot be used: 1.13 or a later 1.x is needed";
}

const UcxLibrary& ucx_library(bool keeps_registrations) {
  static const UcxLibrary library(keeps_registrations);
  return library;
}

}  // namespace waywiser
