#include "waywiser/collective/nccl/nccl_library.hpp"

#include <type_traits>
#include <vector>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int oldest_version = 21000;

std::vector<std::string> library_names() {
  if (const auto named = environment("WAYWISER_LIBNCCL")) return {*named};
  return {"libnccl.so.2"};
}

}  // namespace

NcclLibrary::NcclLibrary() : library_(library_names()) {
  if (!library_.loaded()) {
    why_not_ = library_.why_not();
    return;
  }
  const auto find = [this]<typename Pointer>(Pointer& slot, const char* symbol) {
    slot = library_.find<std::remove_pointer_t<Pointer>>(symbol);
    if (slot == nullptr && why_not_.empty()) why_not_ = library_.name() + " has no " + symbol;
  };
  find(functions_.get_version, "ncclGetVersion");
  find(functions_.get_unique_id, "ncclGetUniqueId");
  find(functions_.comm_init_rank, "ncclCommInitRank");
  find(functions_.comm_destroy, "ncclCommDestroy");
  find(functions_.comm_abort, "ncclCommAbort");
  find(functions_.comm_get_async_error, "ncclCommGetAsyncError");
  find(functions_.get_error_string, "ncclGetErrorString");
  find(functions_.group_start, "ncclGroupStart");
  find(functions_.group_end, "ncclGroupEnd");
  find(functions_.all_reduce, "ncclAllReduce");
  find(functions_.reduce, "ncclReduce");
  find(functions_.all_gather, "ncclAllGather");
  find(functions_.reduce_scatter, "ncclReduceScatter");
  find(functions_.broadcast, "ncclBroadcast");
  find(functions_.send, "ncclSend");
  find(functions_.receive, "ncclRecv");
  if (why_not_.empty() && (functions_.get_version(&version_) != 0 || version_ < oldest_version))
    why_not_ = library_.name() + " is older than NCCL 2.10";
}

void NcclLibrary::check(int result, const char* what) const {
  if (result != 0) throw Error(ErrorKind::device, std::string(what) + ": " + functions_.get_error_string(result));
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary library;
  return library;
}

}  // namespace waywiser
