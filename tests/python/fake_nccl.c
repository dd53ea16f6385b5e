// A stand-in for libnccl and libcuda on a machine without GPUs: "GPU" memory is malloc'd, and processes exchange through
// a file that they map. NCCL_FAKE_DAMAGE=1 spoils what arrives.
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_ranks = 4, chunk = 1 << 16, most_operations = 1024 };
typedef struct { _Atomic uint64_t written, read; size_t bytes; char data[chunk]; } Slot;
typedef struct { int rank, size; Slot* slots; } Comm;
typedef struct { char* at; size_t left; int peer, sends; Comm* comm; } Operation;
typedef struct { char name[128]; } Id;

static Operation pending[most_operations];
static int count, depth;

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int* number) { return *number = 4, 0; }
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = (void*)(intptr_t)(device + 1), 0; }
int cuCtxSetCurrent(void* context) { return context == NULL; }
int cuCtxSynchronize(void) { return 0; }
int cuMemAlloc_v2(uint64_t* at, size_t bytes) { return (*at = (uint64_t)(uintptr_t)malloc(bytes)) == 0; }
int cuMemFree_v2(uint64_t at) { return free((void*)(uintptr_t)at), 0; }
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t bytes) { return memset((void*)(uintptr_t)at, value, bytes), 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) { return memcpy((void*)(uintptr_t)to, from, bytes), 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) { return memcpy(to, (void*)(uintptr_t)from, bytes), 0; }
int cuStreamCreate(void** stream, unsigned flags) { return *stream = &pending, flags != 1; }
int cuGetErrorString(int code, const char** text) { return *text = "made up", code < 0; }

int ncclGetVersion(int* version) { return *version = 22809, 0; }
const char* ncclGetErrorString(int code) { return code ? "made-up failure" : "no error"; }

int ncclGetUniqueId(Id* id) {
  const char* folder = getenv("TMPDIR");
  snprintf(id->name, sizeof id->name, "%s/fake-nccl-XXXXXX", folder ? folder : "/tmp");
  const int file = mkstemp(id->name);
  return file < 0 || ftruncate(file, sizeof(Slot) * most_ranks * most_ranks) != 0 || close(file) != 0;
}

int ncclCommInitRank(Comm** made, int size, Id id, int rank) {
  const int file = open(id.name, O_RDWR);
  if (file < 0 || size > most_ranks) return 4;
  Comm* comm = malloc(sizeof *comm);
  *comm = (Comm){rank, size, mmap(NULL, sizeof(Slot) * most_ranks * most_ranks, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)};
  close(file);
  return *made = comm, comm->slots == MAP_FAILED;
}

static int step(Operation* one) {
  const int from = one->sends ? one->comm->rank : one->peer, to = one->sends ? one->peer : one->comm->rank;
  Slot* slot = &one->comm->slots[from * most_ranks + to];
  const size_t part = one->left < chunk ? one->left : chunk;
  if (one->sends != (slot->written == slot->read)) return 0;
  if (one->sends) {
    memcpy(slot->data, one->at, part);
    ++slot->written;
  } else {
    memcpy(one->at, slot->data, part);
    if (getenv("NCCL_FAKE_DAMAGE") && part) one->at[0] ^= 1;
    ++slot->read;
  }
  one->at += part;
  one->left -= part;
  return 1;
}

// Operations to and from one peer go in order, all others side by side.
static int progress(void) {
  int open = count;
  while (open > 0) {
    char busy[2][most_ranks] = {{0}};
    for (int i = 0; i < count; ++i) {
      Operation* one = &pending[i];
      if (one->comm == NULL || busy[one->sends][one->peer]) continue;
      busy[one->sends][one->peer] = 1;
      if (step(one) && one->left == 0) one->comm = NULL, --open;
    }
    sched_yield();
  }
  return count = 0;
}

int ncclGroupStart(void) { return ++depth, 0; }
int ncclGroupEnd(void) { return --depth == 0 ? progress() : 0; }

static int add(const void* at, size_t bytes, int peer, int sends, Comm* comm) {
  if (count == most_operations) return 5;
  pending[count++] = (Operation){(char*)(uintptr_t)at, bytes, peer, sends, comm};
  return depth == 0 ? progress() : 0;
}

int ncclSend(const void* at, size_t bytes, int type, int peer, Comm* comm, void* stream) {
  return type != 1 || stream != &pending ? 4 : add(at, bytes, peer, 1, comm);
}
int ncclRecv(void* at, size_t bytes, int type, int peer, Comm* comm, void* stream) {
  return type != 1 || stream != &pending ? 4 : add(at, bytes, peer, 0, comm);
}

int ncclAllReduce(const void* give, void* take, size_t length, int type, int sum, Comm* comm, void* stream) {
  if (type != 7 || sum != 0 || stream != &pending) return 4;
  const size_t bytes = 4 * length;
  float* all = malloc(bytes * (size_t)comm->size + 1);
  ncclGroupStart();
  for (int peer = 0; peer < comm->size; ++peer) add(give, bytes, peer, 1, comm);
  for (int peer = 0; peer < comm->size; ++peer) add(all + length * (size_t)peer, bytes, peer, 0, comm);
  ncclGroupEnd();
  float* result = take;
  for (size_t i = 0; i < length; ++i) result[i] = 0;
  for (int peer = 0; peer < comm->size; ++peer)
    for (size_t i = 0; i < length; ++i) result[i] += all[length * (size_t)peer + i];
  free(all);
  return 0;
}
