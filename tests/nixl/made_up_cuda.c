/* The CUDA driver, as far as the back end of NIXL uses it, without a GPU. What it calls GPU memory cannot be touched by
 * the processor: an address of it is of no mapped page, and the bytes lie elsewhere, in memory that another process can
 * open by the handle. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long address;
struct handle {
  char name[64];
};
struct allocation {
  address first;
  size_t bytes;
  char* data;
  char name[64];
};
enum { most = 1024, invalid = 1, not_here = 201 };

static struct allocation known[most];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct allocation* find(address at) {
  for (int i = 0; i < count; ++i)
    if (at >= known[i].first && at - known[i].first < known[i].bytes) return &known[i];
  return NULL;
}

static char* bytes_of(address at) {
  const struct allocation* found = find(at);
  return found == NULL ? (char*)at : found->data + (at - found->first);
}

static int map(const char* name, int file, size_t bytes, address* made) {
  void* nowhere = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (nowhere == MAP_FAILED || data == MAP_FAILED || count == most) return invalid;
  struct allocation* one = &known[count++];
  one->first = *made = (address)nowhere;
  one->bytes = bytes;
  one->data = data;
  snprintf(one->name, sizeof one->name, "%s", name);
  return 0;
}

static int is_ready;
static _Thread_local void* used; /* without it nothing works in a thread */

int cuInit(unsigned flags) { return is_ready = 1, (int)flags; }
int cuDevicePrimaryCtxRetain(void** context, int gpu) { return *context = known, gpu || !is_ready; }
int cuCtxGetCurrent(void** context) { return *context = used, 0; }
int cuCtxSetCurrent(void* context) { return used = context, 0; }

int cuMemAlloc_v2(address* made, size_t bytes) {
  char name[64];
  pthread_mutex_lock(&lock);
  snprintf(name, sizeof name, "/made-up-cuda-%d-%d", getpid(), count);
  const int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  const int code = file < 0 || ftruncate(file, (off_t)bytes) != 0 ? invalid : map(name, file, bytes, made);
  pthread_mutex_unlock(&lock);
  return code;
}

int cuPointerGetAttribute(void* found, int attribute, address at) {
  pthread_mutex_lock(&lock);
  const int code = attribute != 1 || !is_ready || find(at) == NULL;
  if (code == 0) *(void**)found = known;
  pthread_mutex_unlock(&lock);
  return code;
}

int cuMemGetAddressRange_v2(address* first, size_t* bytes, address at) {
  pthread_mutex_lock(&lock);
  const struct allocation* found = find(at);
  if (found != NULL) *first = found->first, *bytes = found->bytes;
  pthread_mutex_unlock(&lock);
  return found == NULL ? invalid : 0;
}

int cuIpcGetMemHandle(struct handle* handle, address first) {
  pthread_mutex_lock(&lock);
  const struct allocation* found = find(first);
  if (found != NULL) memcpy(handle->name, found->name, sizeof handle->name);
  pthread_mutex_unlock(&lock);
  return found == NULL ? invalid : 0;
}

int cuIpcOpenMemHandle_v2(address* made, struct handle handle, unsigned flags) {
  int owner = 0;
  handle.name[63] = 0;
  if (getenv("MADE_UP_CUDA_OPENS_NOTHING") != NULL) return invalid;
  if (flags != 1 || used == NULL || sscanf(handle.name, "/made-up-cuda-%d-", &owner) != 1) return invalid;
  if (owner == getpid()) return not_here;
  const int file = shm_open(handle.name, O_RDWR, 0);
  if (file < 0) return invalid;
  pthread_mutex_lock(&lock);
  const int code = map(handle.name, file, (size_t)lseek(file, 0, SEEK_END), made);
  pthread_mutex_unlock(&lock);
  return code;
}

int cuIpcCloseMemHandle(address first) {
  pthread_mutex_lock(&lock);
  struct allocation* found = find(first);
  if (found != NULL) {
    munmap(found->data, found->bytes);
    found->bytes = 0;
  }
  pthread_mutex_unlock(&lock);
  return found == NULL ? invalid : 0;
}

/* Host memory whose pages are locked; a driver copies other host memory more slowly. */
static struct {
  char* first;
  size_t bytes;
} locked[most];
static int unlocked_copies, unlocked_in_a_copy;
static size_t copied;
static address begun[2]; /* where a copy that waits reads and writes */

/* While the file MADE_UP_CUDA_GATE is there, copies wait; the first one says so by a file beside it. */
static void wait_at_gate(address to, address from) {
  const char* gate = getenv("MADE_UP_CUDA_GATE");
  char here[256];
  if (gate == NULL || access(gate, F_OK) != 0) return;
  begun[0] = to, begun[1] = from;
  snprintf(here, sizeof here, "%s.in", gate);
  close(open(here, O_CREAT | O_WRONLY, 0600));
  while (access(gate, F_OK) == 0) usleep(1000);
  begun[0] = begun[1] = 0;
}

static int is_locked(address at, size_t bytes) {
  for (int i = 0; i < most; ++i)
    if ((char*)at >= locked[i].first && (size_t)((char*)at - locked[i].first) + bytes <= locked[i].bytes) return 1;
  return 0;
}

int cuMemHostRegister_v2(void* first, size_t bytes, unsigned flags) {
  int code = invalid;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < most && code != 0; ++i)
    if (locked[i].bytes == 0 && used != NULL && flags == 1) locked[i].first = first, locked[i].bytes = bytes, code = 0;
  pthread_mutex_unlock(&lock);
  return code;
}

int cuMemHostUnregister(void* first) {
  int code = invalid;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < most && code != 0; ++i)
    if (locked[i].bytes != 0 && locked[i].first == first) {
      for (int end = 0; end < 2; ++end) unlocked_in_a_copy += begun[end] - (address)first < (address)locked[i].bytes;
      locked[i].bytes = 0, code = 0;
    }
  pthread_mutex_unlock(&lock);
  return code;
}

/* What a test does itself. */
int cuMemcpy(address to, address from, size_t bytes) {
  pthread_mutex_lock(&lock);
  memmove(bytes_of(to), bytes_of(from), bytes);
  pthread_mutex_unlock(&lock);
  return 0;
}

int cuMemcpyAsync(address to, address from, size_t bytes, void* stream) {
  wait_at_gate(to, from);
  pthread_mutex_lock(&lock);
  copied += bytes;
  unlocked_copies += (find(to) == NULL && !is_locked(to, bytes)) || (find(from) == NULL && !is_locked(from, bytes));
  pthread_mutex_unlock(&lock);
  return cuMemcpy(to, from, bytes) || used == NULL || stream == NULL;
}

int cuStreamSynchronize(void* stream) { return used == NULL || stream == NULL; }

__attribute__((destructor)) static void end(void) {
  int left = 0;
  for (int i = 0; i < most; ++i) left += locked[i].bytes != 0;
  if (left != 0) fprintf(stderr, "made-up CUDA: %d memories are still locked\n", left);
  if (unlocked_in_a_copy != 0) fprintf(stderr, "made-up CUDA: pages were unlocked in a copy\n");
  if (getenv("MADE_UP_CUDA_TELLS") != NULL) fprintf(stderr, "made-up CUDA: copied %zu bytes\n", copied);
  if (unlocked_copies != 0) fprintf(stderr, "made-up CUDA: %d copies without locked pages\n", unlocked_copies);
  char own[64];
  snprintf(own, sizeof own, "/made-up-cuda-%d-", getpid());
  for (int i = 0; i < count; ++i)
    if (strncmp(known[i].name, own, strlen(own)) == 0) shm_unlink(known[i].name);
}
