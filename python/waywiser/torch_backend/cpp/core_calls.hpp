// What the back end in C++ calls in waywiser._core, which it does not link: plain data and functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace waywiser::torch_backend {

// The name of the capsule. Its number changes with this file.
inline constexpr const char* core_calls_name = "waywiser.torch_backend.core_calls.1";

enum class CallName : int { all_reduce, broadcast, all_gather, reduce_scatter, all_to_all, send, recv };

// Contiguous arrays of one type, in host memory or on one GPU.
struct CallArguments {
  CallName name = CallName::all_reduce;
  int type = 0;  // as type_of() tells
  const void* input = nullptr;
  std::size_t input_bytes = 0;
  void* output = nullptr;
  std::size_t output_bytes = 0;
  int operation = 0;  // as operation_of() tells
  int rank = 0;       // root or peer
  int tag = 0;
  int gpu = -1;              // -1: host memory
  std::uint64_t stream = 0;  // of the GPU: a cudaStream_t, behind which the call is enqueued
};

struct GroupHandle;
struct FutureHandle;

// One thread at a time is in these functions, without the GIL. False: an error, which raise() raises.
struct CoreCalls {
  GroupHandle* group;
  // Of "torch.float32" and "sum". Below 0: the group has none of this name.
  int (*type_of)(const char* name);
  int (*operation_of)(const char* name);
  // Collectives of a GPU are enqueued; what else is not complete gives a future.
  bool (*call)(GroupHandle* group, const CallArguments& arguments, FutureHandle** future);
  bool (*is_capturing)(GroupHandle* group, const CallArguments& arguments, bool* answer);
  // The operation keeps `owner` until it is over; then let_go(owner) is called, by any thread.
  void (*keep)(FutureHandle* future, void* owner, void (*let_go)(void* owner));
  bool (*done)(FutureHandle* future, bool* answer);
  bool (*wait)(FutureHandle* future);
  void (*drop)(FutureHandle* future);
  // Sets Python's error to the last one of this thread. Needs the GIL.
  void (*raise)();
};

}  // namespace waywiser::torch_backend
