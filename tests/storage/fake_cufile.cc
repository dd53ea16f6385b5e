// A cuFile for tests: the host reaches "GPU" memory as fake_cufile_reach() is told. FAKE_CUFILE_MOST: bytes of one call
// at most; FAKE_CUFILE_ERROR: what reads and writes end with; FAKE_CUFILE_DRIVER: what opening the driver ends with;
// FAKE_CUFILE_HOLD: the next read or write hangs until so many that come after it have ended.
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

namespace {

struct Status {
  int error, cuda_error;
};
struct Description {
  int type;
  union {
    int descriptor;
    void* handle;
  };
  const void* operations;
};

std::atomic<int> live, calls;
std::mutex lock;
std::condition_variable one_ended;
int ended = 0;
bool holds = false;
std::byte* (*reach)(std::byte*) = nullptr;

long setting(const char* name, long without) {
  const char* value = std::getenv(name);
  return value == nullptr ? without : std::atol(value);
}

template <typename Move>
ssize_t moved(void* file, std::size_t bytes, Move move) {
  ++calls;
  if (const long error = setting("FAKE_CUFILE_ERROR", 0); error != 0) return error;
  bool held = false;
  if (const long hold = setting("FAKE_CUFILE_HOLD", 0); hold != 0) {
    std::unique_lock guard(lock);
    held = !std::exchange(holds, true);
    const int until = ended + static_cast<int>(hold);
    if (held && !one_ended.wait_for(guard, std::chrono::seconds(30), [&] { return ended >= until; })) return -5011;
  }
  const auto most = static_cast<std::size_t>(setting("FAKE_CUFILE_MOST", 1 << 30));
  const ssize_t result = move(static_cast<int>(reinterpret_cast<std::intptr_t>(file)) - 1, std::min(bytes, most));
  const std::lock_guard guard(lock);
  ++ended;
  if (held) holds = false;
  one_ended.notify_all();
  return result;
}

}  // namespace

extern "C" {

int fake_cufile_live() { return live; }
int fake_cufile_calls() { return calls; }
void fake_cufile_reach(std::byte* (*how)(std::byte*)) { reach = how; }

Status cuFileDriverOpen() { return {static_cast<int>(setting("FAKE_CUFILE_DRIVER", 0)), 0}; }
Status cuFileDriverGetProperties(void*) { return {0, 0}; }
// The file once more, through the page cache: any piece will do, as in compatibility mode.
Status cuFileHandleRegister(void** file, Description* description) {
  if (description->type != 1) return {5022, 0};
  const int flags = ::fcntl(description->descriptor, F_GETFL) & O_ACCMODE;
  const int again = ::open(("/proc/self/fd/" + std::to_string(description->descriptor)).c_str(), flags | O_CLOEXEC);
  if (again < 0) return {5018, 0};
  ++live;
  *file = reinterpret_cast<void*>(static_cast<std::intptr_t>(again) + 1);
  return {0, 0};
}
void cuFileHandleDeregister(void* file) {
  ::close(static_cast<int>(reinterpret_cast<std::intptr_t>(file)) - 1);
  --live;
}
ssize_t cuFileRead(void* file, void* memory, std::size_t bytes, off_t offset, off_t from) {
  return moved(file, bytes, [&](int descriptor, std::size_t some) {
    return ::pread(descriptor, reach(static_cast<std::byte*>(memory)) + from, some, offset);
  });
}
ssize_t cuFileWrite(void* file, const void* memory, std::size_t bytes, off_t offset, off_t from) {
  return moved(file, bytes, [&](int descriptor, std::size_t some) {
    return ::pwrite(descriptor, reach(static_cast<std::byte*>(const_cast<void*>(memory))) + from, some, offset);
  });
}

}  // extern "C"
