#include "gpu_driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <type_traits>

#include "pieces.hpp"
#include "words.hpp"

namespace waywiser_nixl {

// By the driver's interface, as far as it is used: its header is not needed.
struct GpuDriver::Functions {
  struct Handle {
    std::array<unsigned char, 64> bytes;  // passed by value
  };
  using Address = unsigned long long;

  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*current)(void**) = nullptr;
  int (*use)(void*) = nullptr;
  int (*attribute)(void*, int, Address) = nullptr;
  int (*range_of)(Address*, std::size_t*, Address) = nullptr;
  int (*handle_of)(Handle*, Address) = nullptr;
  int (*open)(Address*, Handle, unsigned) = nullptr;
  int (*close)(Address) = nullptr;
  int (*copy)(Address, Address, std::size_t, void*) = nullptr;
  int (*finish)(void*) = nullptr;
  int (*lock)(void*, std::size_t, unsigned) = nullptr;
  int (*unlock)(void*) = nullptr;
  std::atomic<void*> context = nullptr;  // of GPU memory that was registered here

  bool load(void* library) {
    const auto named = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return named(init, "cuInit") && named(retain, "cuDevicePrimaryCtxRetain") && named(current, "cuCtxGetCurrent") &&
           named(use, "cuCtxSetCurrent") && named(range_of, "cuMemGetAddressRange_v2") &&
           named(handle_of, "cuIpcGetMemHandle") && named(open, "cuIpcOpenMemHandle_v2") &&
           named(close, "cuIpcCloseMemHandle") && named(copy, "cuMemcpyAsync") &&
           named(finish, "cuStreamSynchronize") && named(lock, "cuMemHostRegister_v2") &&
           named(unlock, "cuMemHostUnregister") && named(attribute, "cuPointerGetAttribute");
  }
};

namespace {

constexpr unsigned enable_peer_access = 1;
constexpr int context_of_memory = 1;
constexpr unsigned for_all_contexts = 1;
void* const stream_of_thread = reinterpret_cast<void*>(2);  // the driver has one for each thread

void check(int code, const char* what) {
  if (code != 0)
    throw Refusal(Status::backend_error, std::string(what) + ": error " + std::to_string(code) + " of CUDA");
}

}  // namespace

// A thread that uses no GPU uses one here: that of memory that was registered, or the first. Then none again.
class GpuDriver::Inside {
 public:
  explicit Inside(Functions& functions) : functions_(functions) {
    void* current = nullptr;
    if (functions.init(0) != 0) throw Refusal(Status::not_supported, "there is no GPU");
    if (functions.current(&current) == 0 && current != nullptr) return;
    void* context = functions.context;
    if (context == nullptr) check(functions.retain(&context, 0), "the first GPU cannot be used");
    functions.context = context;
    check(functions.use(context), "this thread cannot use the GPU");
    entered_ = true;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    if (entered_) functions_.use(nullptr);
  }

 private:
  Functions& functions_;
  bool entered_ = false;
};

const GpuDriver* GpuDriver::find() {
  static Functions functions;
  static const bool loaded = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return library != nullptr && functions.load(library);
  }();
  static const GpuDriver driver(functions);
  return loaded ? &driver : nullptr;
}

GpuExport GpuDriver::share(std::uint64_t address, std::uint64_t bytes) const {
  if (functions_.init(0) != 0) throw Refusal(Status::not_supported, "there is no GPU");
  void* context = nullptr;
  if (functions_.attribute(static_cast<void*>(&context), context_of_memory, address) == 0 && context != nullptr)
    functions_.context = context;
  const Inside inside(functions_);
  Functions::Address base = 0;
  std::size_t size = 0;
  if (functions_.range_of(&base, &size, address) != 0 || address - base > size || bytes > size - (address - base))
    throw Refusal(Status::invalid, "a GPU memory that was registered is not one allocation of CUDA");
  Functions::Handle handle{};
  if (functions_.handle_of(&handle, base) != 0)
    throw Refusal(Status::not_supported, "a GPU memory has no handle for other processes (of a pool, or mapped)");
  return {handle.bytes, address - base};
}

std::uint64_t GpuDriver::open(const GpuExport& shared) const {
  const Inside inside(functions_);
  Functions::Address base = 0;
  check(functions_.open(&base, {shared.handle}, enable_peer_access), "GPU memory of another process");
  return base;
}

std::uint64_t GpuDriver::allocated_bytes(std::uint64_t base) const {
  const Inside inside(functions_);
  Functions::Address first = 0;
  std::size_t size = 0;
  check(functions_.range_of(&first, &size, base), "an allocation of GPU memory");
  return first == base ? size : 0;
}

void GpuDriver::close(std::uint64_t base) const noexcept {
  told([&] {
    const Inside inside(functions_);
    functions_.close(base);
    return Status::success;
  });
}

void GpuDriver::copy(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const {
  const Inside inside(functions_);
  int failed = 0;
  for_pieces(local, remote, [&](char* mine, char* theirs, std::size_t bytes) {
    const bool reads = operation == Operation::read;
    const auto to = reinterpret_cast<Functions::Address>(reads ? mine : theirs);
    const auto from = reinterpret_cast<Functions::Address>(reads ? theirs : mine);
    if (failed == 0) failed = functions_.copy(to, from, bytes, stream_of_thread);
  });
  const int finished = functions_.finish(stream_of_thread);  // also after a failure: what was enqueued touches memory
  check(failed != 0 ? failed : finished, "a copy of GPU memory");
}

bool GpuDriver::lock_pages(void* memory, std::size_t bytes) const noexcept {
  return told([&] {
           const Inside inside(functions_);
           return functions_.lock(memory, bytes, for_all_contexts) == 0 ? Status::success : Status::not_allowed;
         }) == Status::success;
}

void GpuDriver::unlock_pages(void* memory) const noexcept {
  told([&] {
    const Inside inside(functions_);
    functions_.unlock(memory);
    return Status::success;
  });
}

}  // namespace waywiser_nixl
