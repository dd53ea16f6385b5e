// A stand-in for libnvshmem_host and libcuda on a machine without GPUs: symmetric memory is a file that all ranks map,
// what is enqueued in a stream runs at once, or with each launch of the graph that it was captured in.
// NVSHMEM_FAKE_DAMAGE=1 spoils what is put. NVSHMEM_FAKE_NO_CAPTURE=1 refuses signals in graphs.
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_ranks = 4, heap_bytes = 64 << 20, most_enqueued = 4096, equal = 0, set = 9, unique_id_flag = 8 };
typedef struct { int version; char name[124]; } Id;
typedef struct { int version; Id* id; int rank, size; } IdArguments;
typedef struct { int version; IdArguments id; char content[96]; } Arguments;
typedef struct { int version; void* mpi_comm; Arguments arguments; } Attributes;
typedef struct { _Atomic uint64_t arrived; char rest[4096 - sizeof(uint64_t)]; char heap[][heap_bytes]; } Shared;
typedef struct { uint64_t at[7]; } Words;
typedef struct { void (*run)(Words*); Words words; } Enqueued;
typedef struct { int count; Enqueued all[most_enqueued]; } Graph;

static Shared* shared;
static Graph* capturing;
static int my_rank, ranks;
static size_t used = 64;

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int* number) { return *number = 4, 0; }
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = (void*)(intptr_t)(device + 1), 0; }
int cuCtxSetCurrent(void* context) { return context == NULL; }
int cuCtxSynchronize(void) { return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) { return memcpy((void*)(uintptr_t)to, from, bytes), 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) { return memcpy(to, (void*)(uintptr_t)from, bytes), 0; }
int cuGetErrorString(int code, const char** text) { return *text = "made up", code < 0; }
int cuStreamCreate(void** stream, unsigned flags) { return *stream = &ranks, flags > 1; }
int cuStreamBeginCapture_v2(void* stream, int mode) {
  capturing = calloc(1, sizeof *capturing);
  return stream != &ranks || mode > 2;
}
int cuStreamEndCapture(void* stream, Graph** graph) { return *graph = capturing, capturing = NULL, stream != &ranks; }
int cuGraphInstantiateWithFlags(Graph** made, Graph* graph, unsigned long long flags) { return *made = graph, flags != 0; }
int cuGraphDestroy(Graph* graph) { return graph == NULL; }
int cuGraphExecDestroy(Graph* graph) { return free(graph), 0; }
int cuGraphLaunch(Graph* graph, void* stream) {
  for (int i = 0; i < graph->count; ++i) graph->all[i].run(&graph->all[i].words);
  return stream != &ranks;
}

static void enqueue(void* stream, void (*run)(Words*), Words words) {
  if (stream != &ranks || (capturing && capturing->count == most_enqueued)) abort();
  if (capturing) capturing->all[capturing->count++] = (Enqueued){run, words};
  else run(&words);
}

static void* pointer(uint64_t word) { return (void*)(uintptr_t)word; }
static uint64_t word(const void* at) { return (uint64_t)(uintptr_t)at; }
static char* there(uint64_t mine, int rank) { return (char*)pointer(mine) + ((ptrdiff_t)rank - my_rank) * heap_bytes; }

static void nothing(Words* words) { (void)words; }
static int memory_operation(void* stream) {
  if (!getenv("NVSHMEM_FAKE_NO_CAPTURE")) enqueue(stream, nothing, (Words){{0}});
  return getenv("NVSHMEM_FAKE_NO_CAPTURE") ? 801 : 0;
}
int cuStreamWriteValue64_v2(void* stream, uint64_t at, uint64_t value, unsigned flags) {
  return at % 8 || value || flags ? 1 : memory_operation(stream);
}
int cuStreamWaitValue64_v2(void* stream, uint64_t at, uint64_t value, unsigned flags) {
  return at % 8 || value || flags ? 1 : memory_operation(stream);
}

void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) { *major = 3, *minor = 4, *patch = 5; }

int nvshmemx_get_uniqueid(Id* id) {
  if (id->version != (1 << 16) + 128) return 7;
  const char* folder = getenv("TMPDIR");
  snprintf(id->name, sizeof id->name, "%s/fake-nvshmem-XXXXXX", folder ? folder : "/tmp");
  const int file = mkstemp(id->name);
  return file < 0 || ftruncate(file, sizeof(Shared) + (off_t)most_ranks * heap_bytes) != 0 || close(file) != 0;
}

int nvshmemx_set_attr_uniqueid_args(int rank, int size, const Id* id, Attributes* told) {
  told->arguments.id.id = (Id*)(uintptr_t)id;
  told->arguments.id.rank = rank;
  told->arguments.id.size = size;
  return 0;
}

int nvshmemx_hostlib_init_attr(unsigned flags, Attributes* told) {
  const char* multicast = getenv("NVSHMEM_DISABLE_NVLS");
  if (flags != unique_id_flag || told->version != (1 << 16) + 144 || told->mpi_comm || !multicast || *multicast != '1')
    return 7;
  if (told->arguments.version != (1 << 16) + 128 || told->arguments.id.version != (1 << 16) + 24) return 7;
  my_rank = told->arguments.id.rank, ranks = told->arguments.id.size;
  const int file = open(told->arguments.id.id->name, O_RDWR);
  if (file < 0 || ranks > most_ranks) return 7;
  shared = mmap(NULL, sizeof(Shared) + (size_t)most_ranks * heap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return shared == MAP_FAILED || close(file) != 0;
}

static void barrier(Words* words) {
  (void)words;
  const uint64_t all = (uint64_t)ranks, until = (atomic_fetch_add(&shared->arrived, 1) / all + 1) * all;
  while (shared->arrived < until) sched_yield();
}

void* nvshmem_malloc(size_t bytes) {
  barrier(NULL);
  if (used + bytes > heap_bytes) return NULL;
  void* made = shared->heap[my_rank] + used;
  used += (bytes + 511) / 512 * 512;
  return made;
}
void* nvshmem_calloc(size_t count, size_t bytes) { return nvshmem_malloc(count * bytes); }
void nvshmem_free(void* at) { if (at) barrier(NULL); }

static void put(Words* words) {
  char* to = there(words->at[0], (int)words->at[3]);
  memcpy(to, pointer(words->at[1]), words->at[2]);
  if (getenv("NVSHMEM_FAKE_DAMAGE") && words->at[2]) to[0] ^= 1;
}
static void signal(Words* words) { *(_Atomic uint64_t*)there(words->at[0], (int)words->at[2]) = words->at[1]; }
static void wait(Words* words) {
  while (*(_Atomic uint64_t*)pointer(words->at[0]) != words->at[1]) sched_yield();
}

void nvshmemx_putmem_on_stream(void* to, const void* from, size_t bytes, int rank, void* stream) {
  enqueue(stream, put, (Words){{word(to), word(from), bytes, (uint64_t)rank}});
}
void nvshmemx_signal_op_on_stream(uint64_t* at, uint64_t value, int operation, int rank, void* stream) {
  if (operation != set) abort();
  enqueue(stream, signal, (Words){{word(at), value, (uint64_t)rank}});
}
void nvshmemx_putmem_signal_on_stream(
    void* to, const void* from, size_t bytes, uint64_t* at, uint64_t value, int operation, int rank, void* stream) {
  nvshmemx_putmem_on_stream(to, from, bytes, rank, stream);
  nvshmemx_signal_op_on_stream(at, value, operation, rank, stream);
}
void nvshmemx_signal_wait_until_on_stream(uint64_t* at, int comparison, uint64_t value, void* stream) {
  if (comparison != equal) abort();
  enqueue(stream, wait, (Words){{word(at), value}});
}
void nvshmemx_barrier_all_on_stream(void* stream) { enqueue(stream, barrier, (Words){{0}}); }

// Words: to, from, bytes of a block, bytes between the blocks taken from a rank, offset of mine there.
static void gather(Words* words) {
  const size_t block = words->at[2];
  char* all = malloc(block * (size_t)ranks + 1);
  barrier(NULL);
  for (int rank = 0; rank < ranks; ++rank)
    memcpy(all + (size_t)rank * block, there(words->at[1], rank) + words->at[4], block);
  barrier(NULL);
  if (words->at[3]) memcpy(pointer(words->at[0]), all, block * (size_t)ranks);
  else {
    float* sums = memset(pointer(words->at[0]), 0, block);
    for (int rank = 0; rank < ranks; ++rank)
      for (size_t i = 0; i < block / 4; ++i) sums[i] += ((float*)pointer(word(all) + (size_t)rank * block))[i];
  }
  free(all);
  barrier(NULL);
}

int nvshmemx_fcollectmem_on_stream(int team, void* to, const void* from, size_t bytes, void* stream) {
  return enqueue(stream, gather, (Words){{word(to), word(from), bytes, 1, 0}}), team;
}
int nvshmemx_alltoallmem_on_stream(int team, void* to, const void* from, size_t bytes, void* stream) {
  return enqueue(stream, gather, (Words){{word(to), word(from), bytes, 1, bytes * (size_t)my_rank}}), team;
}
int nvshmemx_float_sum_reduce_on_stream(int team, float* to, const float* from, size_t count, void* stream) {
  return enqueue(stream, gather, (Words){{word(to), word(from), 4 * count, 0, 0}}), team;
}
int nvshmemx_float_sum_reducescatter_on_stream(int team, float* to, const float* from, size_t count, void* stream) {
  return enqueue(stream, gather, (Words){{word(to), word(from), 4 * count, 0, 4 * count * (size_t)my_rank}}), team;
}

static void broadcast(Words* words) {
  barrier(NULL);
  const int root = (int)words->at[3];
  if (my_rank != root) memcpy(pointer(words->at[0]), there(words->at[1], root), words->at[2]);
  barrier(NULL);
}
int nvshmemx_broadcastmem_on_stream(int team, void* to, const void* from, size_t bytes, int root, void* stream) {
  return enqueue(stream, broadcast, (Words){{word(to), word(from), bytes, (uint64_t)root}}), team;
}

// Kernels of nvshmem_calls.cu, whose "module" is any file, as functions of the host.
static uint64_t argument(void** parameters, int i) { return *(uint64_t*)parameters[i]; }
static void set_there(uint64_t at, uint64_t value, int rank) { signal(&(Words){{at, value, (uint64_t)rank}}); }
static void until(uint64_t at, uint64_t value) {
  while (*(_Atomic uint64_t*)pointer(at) < value) sched_yield();
}
static void many_puts(void** given) {
  for (uint64_t i = 0; i < argument(given, 3); ++i)
    put(&(Words){{argument(given, 0), argument(given, 1), argument(given, 2), 1}});
}
static void many_gets(void** given) {
  for (uint64_t i = 0; i < argument(given, 3); ++i)
    memcpy(pointer(argument(given, 0)), there(argument(given, 1), 1), argument(given, 2));
}
static void many_signals(void** given) {
  const uint64_t at = argument(given, 0), end = argument(given, 1) + argument(given, 2);
  for (uint64_t number = argument(given, 1); number < end; ++number) {
    if (my_rank == 0) set_there(at, number, 1);
    until(at, number);
    if (my_rank == 1) set_there(at, number, 0);
  }
}
static void many_messages(void** given) {
  const uint64_t taken = argument(given, 0), bytes = argument(given, 2), at = argument(given, 3);
  for (uint64_t number = argument(given, 4); number < argument(given, 4) + argument(given, 5); ++number) {
    if (my_rank == 0) put(&(Words){{taken, argument(given, 1), bytes, 1}}), set_there(at, number, 1);
    until(at, number);
    if (my_rank == 1) put(&(Words){{taken, taken, bytes, 0}}), set_there(at, number, 0);
  }
}
static void many_atomics(void** given) {
  for (uint64_t i = 0; i < argument(given, 1); ++i) atomic_fetch_add((_Atomic uint64_t*)there(argument(given, 0), 1), 1);
}
static void many_barriers(void** given) {
  for (uint64_t i = 0; i < argument(given, 0); ++i) barrier(NULL);
}
static const struct { const char* name; void (*run)(void**); } kernels[] = {
    {"waywiser_put", many_puts},         {"waywiser_get", many_gets},         {"waywiser_signal", many_signals},
    {"waywiser_put_message", many_messages}, {"waywiser_atomics", many_atomics}, {"waywiser_barrier", many_barriers}};

int cuDeviceGetAttribute(int* value, int which, int device) { return *value = which == 75 ? 9 : 0, device; }
int cuModuleLoad(void** module, const char* file) { return *module = shared, access(file, R_OK) != 0; }
int nvshmemx_cumodule_init(void* module) { return module != shared; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i)
    if (strcmp(kernels[i].name, name) == 0) return *function = (void*)kernels[i].run, module != shared;
  return 500;
}
int cuLaunchKernel(void (*function)(void**), unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned bytes, void* stream, void** parameters, void** extra) {
  if (x < 1 || x > 16 || y != 1 || z != 1 || threads % 32 || ty != 1 || tz != 1 || bytes || extra) return 1;
  return function(parameters), stream != &ranks;
}
