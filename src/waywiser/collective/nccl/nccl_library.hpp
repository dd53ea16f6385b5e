#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "waywiser/base/dynamic_library.hpp"

namespace waywiser {

// The part of NCCL's C interface that is used (nccl.h, unchanged since 2.10), opened at run time. A stream is a
// cudaStream_t.
struct NcclUniqueId {
  std::array<char, 128> bytes{};
};
using NcclComm = void*;

struct NcclFunctions {
  int (*get_version)(int*);
  int (*get_unique_id)(NcclUniqueId*);
  int (*comm_init_rank)(NcclComm*, int ranks, NcclUniqueId, int rank);
  int (*comm_destroy)(NcclComm);
  int (*comm_abort)(NcclComm);
  int (*comm_get_async_error)(NcclComm, int*);
  const char* (*get_error_string)(int);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, NcclComm, void* stream);
  int (*reduce)(const void*, void*, std::size_t, int type, int op, int root, NcclComm, void* stream);
  int (*all_gather)(const void*, void*, std::size_t, int type, NcclComm, void* stream);
  int (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, NcclComm, void* stream);
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, NcclComm, void* stream);
  int (*send)(const void*, std::size_t, int type, int peer, NcclComm, void* stream);
  int (*receive)(void*, std::size_t, int type, int peer, NcclComm, void* stream);
};

class NcclLibrary {
 public:
  NcclLibrary();
  // Empty: loaded. Otherwise the loader's message, or the missing functions.
  const std::string& why_not() const noexcept { return why_not_; }
  const NcclFunctions& functions() const noexcept { return functions_; }
  int version() const noexcept { return version_; }  // 22809 is 2.28.9
  // Throws device with NCCL's message.
  void check(int result, const char* what) const;

 private:
  DynamicLibrary library_;
  NcclFunctions functions_{};
  std::string why_not_;
  int version_ = 0;
};

// WAYWISER_LIBNCCL, or libnccl.so.2 as the loader finds it, including one that the program has already loaded.
const NcclLibrary& nccl_library();

}  // namespace waywiser
