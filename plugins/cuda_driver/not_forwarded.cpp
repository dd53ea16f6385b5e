// All other functions of the driver API, by their names. The first call of each prints a line.
#include <atomic>
#include <cstdio>

namespace {

constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED

int refuse_call(const char* name, std::atomic<bool>& told) {
  if (!told.exchange(true)) std::fprintf(stderr, "waywiser: %s is not forwarded to the remote GPU\n", name);
  return not_supported;
}

}  // namespace

// Whatever a program gives them, they read nothing of it.
#define WAYWISER_NOT_FORWARDED(name)                     \
  extern "C" [[gnu::visibility("default")]] int name() { \
    static std::atomic<bool> told{false};                \
    return refuse_call(#name, told);                     \
  }
#include "not_forwarded.inc"
