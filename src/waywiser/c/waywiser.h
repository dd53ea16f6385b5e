/* The C interface: ranks that talk to each other, GPU to GPU. C99, and C++.
 *
 * Functions return WW_OK or an error code; ww_error_text() returns the message. Output parameters are set only with
 * WW_OK. No function throws an exception or ends the process.
 *
 * An array is an address, a number of elements and a type, and may be empty (NULL and 0). It may lie in host memory or
 * on a GPU; the library finds out from the address. Input and output may overlap only as docs/groups.md says: where
 * they may be the same array or, in gathers and scatters, one this rank's block of the other. All ranks of a group must
 * call collectives in the same order, with the same counts, types and roots. Once one rank has failed, all calls of all
 * ranks of the job return an error with the first reason.
 *
 * Threads: one thread at a time may be in a call of what one ww_join returned: its group, all groups split from it, and
 * their futures, windows, prepared and halo exchanges. A call that another thread's call meets returns invalid input,
 * and the other one goes on. With the option `threads` different groups may be used by different threads at once; two
 * threads in one group get the same error. Each thread may also call ww_join by itself, in the same order at all ranks.
 * Functions that free wait until the other thread's call is over, or polls. */
#ifndef WAYWISER_C_WAYWISER_H
#define WAYWISER_C_WAYWISER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WW_API __attribute__((visibility("default")))
#else
#define WW_API
#endif

/* An enumeration of C++ holds any int then, as one of C does: a wrong value can be passed, and is refused. */
#ifdef __cplusplus
#define WW_ANY_INT : int
#else
#define WW_ANY_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ww_error WW_ANY_INT {
  WW_OK = 0,
  WW_INVALID_INPUT = 1, /* an argument, file, environment variable or message from outside is wrong */
  WW_UNAVAILABLE = 2,   /* this machine, or this build, cannot do it */
  WW_TIMEOUT = 3,       /* ww_timeout() has passed */
  WW_DEVICE = 4,        /* a driver or library call has failed */
  WW_IO = 5,            /* a socket or a file; also: another rank has failed or gone */
  WW_CORRUPT = 6,       /* data arrived, but not the data that were sent */
  WW_INTERRUPTED = 7,   /* the user asked to stop */
  WW_NO_MEMORY = 8,     /* out of host memory */
  WW_INTERNAL = 9       /* a defect of the library */
} ww_error;

typedef enum ww_type WW_ANY_INT {
  WW_FLOAT64 = 0,
  WW_FLOAT32 = 1,
  WW_FLOAT16 = 2,
  WW_BFLOAT16 = 3,
  WW_INT8 = 4,
  WW_INT16 = 5,
  WW_INT32 = 6,
  WW_INT64 = 7,
  WW_UINT8 = 8,
  WW_UINT16 = 9,
  WW_UINT32 = 10,
  WW_UINT64 = 11,
  WW_COMPLEX64 = 12, /* two float32; there is no min and no max */
  WW_COMPLEX128 = 13,
  WW_FLOAT8_E4M3FN = 14, /* as in PyTorch: overflow gives NaN */
  WW_FLOAT8_E5M2 = 15    /* as in PyTorch: overflow gives infinity */
} ww_type;

/* avg is the sum divided by the number of ranks; for integers it is rounded toward zero. band, bor and bxor are for the
 * bits of integers; land, lor and lxor for whether they are other than 0, and give 1 or 0. */
typedef enum ww_op WW_ANY_INT {
  WW_SUM = 0,
  WW_PROD = 1,
  WW_MIN = 2,
  WW_MAX = 3,
  WW_AVG = 4,
  WW_BAND = 5,
  WW_BOR = 6,
  WW_BXOR = 7,
  WW_LAND = 8,
  WW_LOR = 9,
  WW_LXOR = 10
} ww_op;

/* How the boundary values of a halo exchange travel: docs/halo.md. */
typedef enum ww_halo_variant WW_ANY_INT {
  WW_HALO_WHOLE_FIELD = 0,  /* through a copy of each whole field */
  WW_HALO_PER_NEIGHBOR = 1, /* one message for each field and part of the boundary */
  WW_HALO_PACKED = 2,       /* one message for each neighbour */
  WW_HALO_DIRECT = 3,       /* as per_neighbor, by one kernel */
  WW_HALO_STRIDED = 5,      /* as packed; the copy engine of a GPU packs */
  WW_HALO_GPU_AWARE = 7,    /* as packed; the group's messages get the packed GPU memory */
  WW_HALO_MIXED = 8         /* sides differ: ww_halo_use_sides */
} ww_halo_variant;

typedef struct ww_group ww_group;
typedef struct ww_future ww_future;
typedef struct ww_message ww_message;
typedef struct ww_window ww_window;
typedef struct ww_prepared ww_prepared;
typedef struct ww_halo ww_halo;
typedef struct ww_stream ww_stream;
typedef struct ww_remote ww_remote;
typedef struct ww_plan ww_plan;
typedef struct ww_file ww_file;
typedef struct ww_shuffle ww_shuffle;

struct ArrowSchema;
struct ArrowArray;

/* When a call is complete. WW_WAIT: when it returns. ww_begin(&future): when the future is done; the future must be
 * waited for or freed, and the arrays must live until then. ww_on(stream): when the stream has run it; the call is
 * enqueued behind earlier work of the stream. Both at once is an error. Collectives of GPU arrays with WW_WAIT or
 * ww_begin run in a stream of the group where kernels or NCCL serve them; earlier work on the arrays must be complete.
 */
typedef struct ww_mode {
  ww_future** future;
  ww_stream* stream;
} ww_mode;
/* NOLINTBEGIN(modernize-use-nullptr): C has none. */
static const ww_mode WW_WAIT = {NULL, NULL};
static inline ww_mode ww_begin(ww_future** future) {
  ww_mode mode = {future, NULL};
  return mode;
}
static inline ww_mode ww_on(ww_stream* stream) {
  ww_mode mode = {NULL, stream};
  return mode;
}
/* NOLINTEND(modernize-use-nullptr) */

/* What a failed operation on its GPU does to this rank: every later call on the GPU fails; the GPU goes on, and what
 * the operation should have brought is NaN; the process ends. */
typedef enum ww_on_failure WW_ANY_INT {
  WW_ON_FAILURE_DEFAULT = 0, /* WAYWISER_ON_FAILURE, or WW_ON_FAILURE_TRAP */
  WW_ON_FAILURE_TRAP = 1,
  WW_ON_FAILURE_RAISE = 2,
  WW_ON_FAILURE_ABORT = 3
} ww_on_failure;

/* How to join. Set all bytes to 0, which equals passing NULL, then set `size`. */
typedef struct ww_join_options {
  size_t size;         /* sizeof(ww_join_options) */
  double timeout;      /* of every wait, seconds; 0: WAYWISER_TIMEOUT, or 60 */
  int progress_thread; /* 1: operations progress while the program computes; 0: WAYWISER_PROGRESS_THREAD, or no */
  int virtual_gpus;    /* for tests without a GPU: number of virtual GPUs of 1 GiB that replace CUDA's */
  int threads;         /* 1: threads may use different groups at once; calls that wait then give way to each other */
  int max_ctas;        /* most blocks of a kernel of a collective of GPU arrays; 0: WAYWISER_MAX_CTAS, or no limit */
  ww_on_failure on_failure;
} ww_join_options;

/* What ranks need to meet without a launcher. It holds the job's secret: whoever has it can become a rank. */
typedef struct ww_unique_id {
  char bytes[128];
} ww_unique_id;

/* In place of a rank and of a tag, to receive and to probe. */
typedef enum ww_any WW_ANY_INT { WW_ANY_SOURCE = -32769, WW_ANY_TAG = -32770 } ww_any;

/* What a receive has taken, or what a probe has found. */
typedef struct ww_message_status {
  int source;
  int tag;
  ww_type type;
  size_t count; /* elements */
} ww_message_status;

/* What a plan is asked for. A transfer between two memories has a source and a destination; all else has a memory and a
 * number of ranks, and a partner if it is not a group's. */
typedef struct ww_plan_key {
  const char* operation;   /* a transfer's "latency", "streaming", "bidirectional", "loaded"; else "all_reduce", ... */
  const char* source;      /* "gpu0", "host0" */
  const char* destination; /* the same, or of another node, as `waywiser explain` takes it */
  const char* rail;        /* the network device that the rank is bound to; NULL: any */
  int processes;           /* of a transfer: 1, or 2 if each has its own process */
  const char* memory;      /* "host" or "gpu" */
  int ranks;
  const char* partner; /* another library and its version, "NCCL 2.27.5", or a server's GPU; NULL: none */
} ww_plan_key;

/* What the plan says, as text that ends with a zero and is cut where it is too long. */
typedef struct ww_plan_choice {
  char way[256];       /* "copy_engine", "LL128(blocks=16)" */
  char runner_up[256]; /* "": there is none */
  char why[256];
  double seconds;         /* by the measurements; 0 beyond the sizes that were measured */
  double runner_up_ratio; /* its time divided by that of the way, in the middle of the range of sizes; 0: none */
  size_t from_bytes;      /* the range of sizes, both included */
  size_t to_bytes;
} ww_plan_choice;

/* What a plan is. */
typedef struct ww_plan_facts {
  char fingerprint[64]; /* of the machines that it is for */
  char hash[32];
  int simulated; /* 1: from a simulation */
} ww_plan_facts;

/* What one rank gives to a neighbour, and what it takes from it. If two ranks are neighbours in several ways, tags
 * (0 to 32766) match what is given with what is taken. */
typedef struct ww_exchange {
  int rank;
  const void* give;
  size_t give_count;
  ww_type give_type;
  int give_tag;
  void* take;
  size_t take_count;
  ww_type take_type;
  int take_tag;
} ww_exchange;

/* One neighbour in a mesh: the cells whose values it gets, and the cells of this rank that it fills, both in an order
 * that both ranks know. */
typedef struct ww_halo_neighbor {
  int rank;
  const int64_t* give;
  size_t give_count;
  const int64_t* take;
  size_t take_count;
} ww_halo_neighbor;

/* A field: ww_halo_cells() times `components` elements. */
typedef struct ww_halo_field {
  void* values;
  ww_type type;
  size_t components;    /* 1 for a scalar field */
  int components_first; /* 0: the components of a cell lie together; 1: the values of a component lie together */
} ww_halo_field;

/* A side: cells that this rank gives to another one. In a mesh each neighbour is one, in the order of the call. */
typedef struct ww_halo_side {
  int rank;
  int face[4]; /* of a grid: where that rank lies, -1, 0 or 1 in each dimension; else 0 */
  size_t cells;
  int variant; /* a ww_halo_variant */
} ww_halo_side;

/* What the exchanges by a variant have done at this rank. */
typedef struct ww_halo_totals {
  uint64_t exchanges;
  uint64_t messages, message_bytes; /* sent to other ranks */
  uint64_t bus_copies, bus_bytes;   /* between a GPU and host memory, both ways */
} ww_halo_totals;

/* From the beginning of the first start to the end of the last finish; what a stream does later is not seen. */
typedef struct ww_halo_seconds {
  double inside;     /* start and finish */
  double overlapped; /* between them */
  double elapsed;    /* in all */
} ww_halo_seconds;

/* A range of a file, and its bytes in memory. A write only reads them. */
typedef struct ww_file_part {
  uint64_t offset;
  void* data;
  size_t bytes;
} ww_file_part;

/* A number that a function of a remote GPU takes by name. */
typedef struct ww_remote_number {
  const char* name;
  double value;
} ww_remote_number;

/* What a kernel of a remote GPU is given. */
typedef enum ww_argument_kind WW_ANY_INT {
  WW_ARGUMENT_ARRAY = 0, /* an array there: uint64_t, its number */
  WW_ARGUMENT_INT32 = 1,
  WW_ARGUMENT_INT64 = 2,
  WW_ARGUMENT_FLOAT32 = 3,
  WW_ARGUMENT_FLOAT64 = 4
} ww_argument_kind;
typedef struct ww_remote_argument {
  ww_argument_kind kind;
  const void* value;
} ww_remote_argument;
/* x, y and z: of the grid in blocks, of a block in threads; and bytes of dynamic shared memory of a block. */
typedef struct ww_remote_shape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared;
} ww_remote_shape;

/* Errors and names ------------------------------------------------------------------------------------------------ */

/* The message of this thread's last failed call; "" before. Valid until its next failed call. */
WW_API const char* ww_error_text(void);
/* "invalid input", "timeout", ... Never NULL. */
WW_API const char* ww_error_name(int error);
/* The version of the library: "0.1.0". */
WW_API const char* ww_version(void);
/* Bytes of an element; 0 for an invalid type. */
WW_API size_t ww_type_size(ww_type type);

/* Groups ---------------------------------------------------------------------------------------------------------- */

/* The group of all ranks that the launcher (waywiser run, mpirun, srun, torchrun) has started; without a launcher a
 * group of one rank. All ranks wait for each other. `options` may be NULL. Errors: invalid input (environment),
 * timeout, io, unavailable. */
WW_API int ww_join(const ww_join_options* options, ww_group** group);
/* Without a launcher: one process makes an id, and the program gives its bytes to all others. `towards` NULL or "": all
 * ranks are on this machine. Otherwise this process will be rank 0, and listens from now on: on its address towards
 * this host of another machine, or on this address of its own machine. Errors: invalid input, io. */
WW_API int ww_make_unique_id(const char* towards, ww_unique_id* id);
/* ww_join with an id, as a rank of `size`. An id serves one job. Errors also: invalid input for other bytes. */
WW_API int ww_join_by_id(const ww_join_options* options, const ww_unique_id* id, int rank, int size, ww_group** group);
/* Waits until all ranks have closed and all enqueued GPU operations have ended. Afterwards only ww_group_free may be
 * called. Returns the error of a failed GPU operation if no call has returned it yet. */
WW_API int ww_close(ww_group* group);
/* NULL is allowed. Free its windows, taken messages, prepared exchanges, halo exchanges and streams before. If a rank
 * has not closed, freeing its last group waits 0.25 s; the rest of the wait is left to the end of the process. */
WW_API void ww_group_free(ww_group* group);
/* Ends this group and all others of the job at once: all calls of all ranks return an error with `why`, those under way
 * too, and kernels that wait stop. Waits for nobody; any thread may call it, while another one is in a call. */
WW_API int ww_abort(ww_group* group, const char* why);
/* Asks, and does not wait: WW_OK, or io if the group has failed; ww_error_text() says why. A failed operation on a GPU
 * is known after 20 ms, whether or not a call has returned it. Any thread may ask. */
WW_API int ww_failure(const ww_group* group);
/* Ranks with the same color form a group, ordered by key, then rank. NULL for a color below 0. Collective. */
WW_API int ww_split(ww_group* group, int color, int key, ww_group** part);
/* The same as jobs of their own, joined with the options of `group`: a failure ends one of them, or `group`, and not
 * the others, and errors number its ranks from 0. Each is closed by itself. */
WW_API int ww_split_apart(ww_group* group, int color, int key, ww_group** part);
/* The ranks on this rank's machine form a group, ordered by key, then rank. Collective. */
WW_API int ww_split_by_machine(ww_group* group, int key, ww_group** part);
/* 0 to size - 1; -1 without a group. */
WW_API int ww_rank(const ww_group* group);
/* Number of ranks; 0 without a group. */
WW_API int ww_size(const ww_group* group);
/* The same among the ranks on this rank's machine, in the order of the group. */
WW_API int ww_local_rank(const ww_group* group);
WW_API int ww_local_size(const ww_group* group);
/* The limit of every wait, in seconds; 0 without a group. */
WW_API double ww_timeout(const ww_group* group);
/* Errors: invalid input (the timeout is not above 0). */
WW_API int ww_set_timeout(ww_group* group, double seconds);

/* Messages. Messages between two ranks arrive in order; `tag` (0 to 32767) distinguishes them. Number and type of
 * elements must agree. On streams the tag is 0, and the arrays of a ww_sendrecv must not overlap. Errors: invalid
 * input, timeout, io; with a stream also unavailable and device. */

WW_API int ww_send(ww_group* group, const void* data, size_t count, ww_type type, int to, int tag, ww_mode mode);
/* `from` may be WW_ANY_SOURCE and `tag` WW_ANY_TAG, but not on a stream: the message goes to the first receive, in the
 * order of the calls, that it matches. */
WW_API int ww_recv(ww_group* group, void* data, size_t count, ww_type type, int from, int tag, ww_mode mode);
/* The same for a message of at most `count` elements (out of a GPU: exactly as many). When the call is complete,
 * `status`, which must live as long as `data`, says what has come. */
WW_API int ww_recv_status(ww_group* group, void* data, size_t count, ww_type type, int from, int tag,
                          ww_message_status* status, ww_mode mode);
/* Waits for the first message that matches and that no receive takes; the message stays. Errors also: unavailable, for
 * a message out of a GPU or by several network cards, whose length only a receive learns. */
WW_API int ww_probe(ww_group* group, int from, int tag, ww_message_status* status);
/* The same, but waits at most `patience` seconds, 0 or more; if no message has come, *found is 0. */
WW_API int ww_iprobe(ww_group* group, int from, int tag, double patience, int* found, ww_message_status* status);
/* The same, and takes the message: no receive and no probe sees it any more. A patience below 0 waits as every call.
 * *message is NULL if none has come. */
WW_API int ww_mprobe(ww_group* group, int from, int tag, double patience, ww_message_status* status,
                     ww_message** message);
/* Once: copies it into an array of host memory of its type, and of at least its length. */
WW_API int ww_mrecv(ww_message* message, void* data, size_t count, ww_type type);
/* NULL is allowed. A message that has not been received is lost. */
WW_API void ww_message_free(ww_message* message);
/* `data` and `into` may be the same array, if the mode is WW_WAIT. */
WW_API int ww_sendrecv(ww_group* group, const void* data, size_t count, int to, void* into, size_t into_count, int from,
                       ww_type type, int tag, ww_mode mode);
/* Arrays that are received into must not overlap any other array. */
WW_API int ww_neighbor_exchange(ww_group* group, const ww_exchange* neighbors, size_t count, ww_mode mode);

/* Collectives. `count` counts elements; n is the number of ranks. Errors as for messages. ---------------------------
 */

WW_API int ww_barrier(ww_group* group, ww_mode mode);
/* data: count, from the root to all ranks. */
WW_API int ww_broadcast(ww_group* group, void* data, size_t count, ww_type type, int root, ww_mode mode);
/* input: count; output: count at the root, at other ranks it is not used and may be NULL. */
WW_API int ww_reduce(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op, int root,
                     ww_mode mode);
/* input, output: count. */
WW_API int ww_all_reduce(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op,
                         ww_mode mode);
/* input, output: count; the reduction of this rank's input and of those of all lower ranks, but there is no avg. */
WW_API int ww_scan(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op,
                   ww_mode mode);
/* The same of the lower ranks only; rank 0's output is not touched and may be NULL. */
WW_API int ww_exscan(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op,
                     ww_mode mode);
/* All arrays: count, in host memory. For each element the least (greatest) value of all ranks, and the location that
 * its rank gave for it; of ranks with equal values the lowest. Errors also: unavailable, for GPU memory. */
WW_API int ww_minloc(ww_group* group, const void* values, const int64_t* locations, void* found, int64_t* found_at,
                     size_t count, ww_type type);
WW_API int ww_maxloc(ww_group* group, const void* values, const int64_t* locations, void* found, int64_t* found_at,
                     size_t count, ww_type type);
/* input: n * count; output: count, this rank's part. */
WW_API int ww_reduce_scatter(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_op op,
                             ww_mode mode);
/* input: count; output: n * count, in rank order. */
WW_API int ww_all_gather(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_mode mode);
/* input, output: n * count; block i goes to, and comes from, rank i. */
WW_API int ww_all_to_all(ww_group* group, const void* input, void* output, size_t count, ww_type type, ww_mode mode);
/* input: count; output: n * count at the root, at other ranks it is not used and may be NULL. */
WW_API int ww_gather(ww_group* group, const void* input, void* output, size_t count, ww_type type, int root,
                     ww_mode mode);
/* input: n * count at the root, at other ranks it is not used and may be NULL; output: count. */
WW_API int ww_scatter(ww_group* group, const void* input, void* output, size_t count, ww_type type, int root,
                      ww_mode mode);
/* counts[i] elements come from rank i; n counts, the same at all ranks. input: counts[rank]; output: their sum. */
WW_API int ww_all_gather_v(ww_group* group, const void* input, void* output, const size_t* counts, ww_type type,
                           ww_mode mode);
/* give[i] elements go to rank i, take[i] elements come from it; n of each. input, output: their sums. */
WW_API int ww_all_to_all_v(ww_group* group, const void* input, const size_t* give, void* output, const size_t* take,
                           ww_type type, ww_mode mode);
/* Like ww_gather, with counts[i] elements from rank i. */
WW_API int ww_gather_v(ww_group* group, const void* input, void* output, const size_t* counts, ww_type type, int root,
                       ww_mode mode);
/* Like ww_scatter, with counts[i] elements for rank i. */
WW_API int ww_scatter_v(ww_group* group, const void* input, const size_t* counts, void* output, ww_type type, int root,
                        ww_mode mode);

/* Futures --------------------------------------------------------------------------------------------------------- */

/* done: 1 if the operation is over, else 0. Advances all operations under way. Errors: those of the operation. */
WW_API int ww_future_test(ww_future* future, int* done);
/* Waits until it is over. The future must still be freed. Errors: those of the operation. */
WW_API int ww_future_wait(ww_future* future);
/* Waits for each; NULLs are left out. */
WW_API int ww_wait_all(ww_future* const* futures, size_t count);
/* Waits until one is over, and sets `place` to that of the first that is. NULLs are left out: free it, and put NULL in
 * its place for the next call. All are of one ww_join. Errors also: invalid input if there is none. */
WW_API int ww_wait_any(ww_future* const* futures, size_t count, size_t* place);
/* NULL is allowed. If the operation is not over, this ends it, and the group fails. */
WW_API void ww_future_free(ww_future* future);

/* Windows: memory of each rank that the others read and write. It must live until all have finished: a barrier tells
 * when. Offsets and lengths are bytes. Errors: invalid input, timeout, io. -------------------------------------------
 */

/* Collective. Exposes host memory at all ranks, or GPU memory at all ranks; then the ranks must be on one machine.
 * Ranks may expose different numbers of bytes. Errors: unavailable if GPU memory cannot be shared. */
WW_API int ww_expose(ww_group* group, void* memory, size_t bytes, ww_window** window);
/* The same with a promise: the arrays of a collective lie at equal offsets of one such window at all ranks, or in none at
 * any rank. Long collectives between them on GPUs stage nothing. All ranks expose equally many bytes. A call that breaks
 * the promise fails. Errors also: invalid input for windows of unequal sizes, or if other ranks call ww_expose. */
WW_API int ww_expose_symmetric(ww_group* group, void* memory, size_t bytes, ww_window** window);
/* NULL is allowed. Not collective. */
WW_API void ww_window_free(ww_window* window);
/* The bytes that `rank` has exposed. */
WW_API int ww_window_bytes(const ww_window* window, int rank, size_t* bytes);
/* Returns when `data` may be reused; ww_flush returns when the bytes have arrived. */
WW_API int ww_put(ww_window* window, const void* data, size_t bytes, int to, size_t offset);
/* Returns when the bytes have arrived. */
WW_API int ww_get(ww_window* window, void* data, size_t bytes, int from, size_t offset);
/* Writes 8 bytes, at an offset that is a multiple of 8, after all earlier puts of this rank to that rank have arrived.
 */
WW_API int ww_signal(ww_window* window, int to, size_t offset, uint64_t value);
/* Waits until the word at this offset of this rank's own memory is at least the value. */
WW_API int ww_wait_signal(ww_window* window, size_t offset, uint64_t at_least);
/* Returns when all puts and signals of this rank, in all windows, have arrived. */
WW_API int ww_flush(ww_group* group);

/* Prepared exchanges and collectives: all ranks, also those without neighbours, prepare one together and start it
 * often. The arrays must live as long. ------------------------------------------------------------------------------
 */

WW_API int ww_prepare_exchange(ww_group* group, const ww_exchange* neighbors, size_t count, ww_prepared** prepared);
/* A collective by its name: "all_reduce", "reduce", "reduce_scatter", "broadcast" (of `output`), "all_gather",
 * "all_to_all", "gather", "scatter", "scan" or "exscan", with arrays and `count` as in the call ww_NAME. `op` and
 * `root` are for calls that have them. Each start is that call. Errors: those of the call, at all ranks. */
WW_API int ww_prepare_collective(ww_group* group, const char* operation, const void* input, void* output, size_t count,
                                 ww_type type, ww_op op, int root, ww_prepared** prepared);
/* Collective. With a stream it is enqueued, without a call of ww_prepared_wait; with NULL it only begins. */
WW_API int ww_prepared_start(ww_prepared* prepared, ww_stream* stream);
/* Waits for the start begun by ww_prepared_start(prepared, NULL); required before the next start. */
WW_API int ww_prepared_wait(ww_prepared* prepared);
/* NULL is allowed. */
WW_API void ww_prepared_free(ww_prepared* prepared);

/* Halo exchanges: they fill the ghost cells of a rank's fields with the values of the ranks that own them, again and
 * again. All ranks make one together, set the same fields in the same order and start it equally often. The arrays must
 * live as long; at each rank all are in host memory, or all on one GPU. Between start and finish the fields must not be
 * written, and their ghosts must not be read. What one rank gets wrong is an error of all ranks. Errors: invalid input,
 * timeout, io; on GPUs also unavailable and device. -----------------------------------------------------------------
 */

/* The box of a rank if a grid is cut evenly, with few cells on cuts. first, count: `dimensions` numbers each. Not
 * collective. Errors: invalid input. */
WW_API int ww_grid_box(int dimensions, const int64_t* shape, int ranks, int rank, int64_t* first, int64_t* count);
/* Collective. A grid of 1 to 4 dimensions, the slowest first (in Fortran: the last index). shape: cells of the whole
 * grid; ghost: the width on both sides; periodic: 0 or 1; first, count: the box of cells that this rank owns, which may
 * be empty. The ranks' boxes must cover the grid. There are no fields yet. A field has count + 2 * ghost cells in each
 * dimension. */
WW_API int ww_halo_grid(ww_group* group, int dimensions, const int64_t* shape, const int64_t* ghost,
                        const int* periodic, const int64_t* first, const int64_t* count, ww_halo** halo);
/* Collective. A mesh by its lists; cells: of this rank's fields, with ghosts. There are no fields yet. */
WW_API int ww_halo_mesh(ww_group* group, size_t cells, const ww_halo_neighbor* neighbors, size_t count, ww_halo** halo);
/* The cells of a field, with ghosts. */
WW_API int ww_halo_cells(const ww_halo* halo, size_t* cells);
/* Collective: these fields from now on. If ww_halo_tune has chosen the variant, it runs again, with the same time limit
 * and file as before; else the default variant is used. After an error the fields are as before. */
WW_API int ww_halo_set_fields(ww_halo* halo, const ww_halo_field* fields, size_t count);
/* Begins an exchange behind earlier work of the stream; with NULL no stream may be using the fields. Errors:
 * unavailable in a stream that is being captured, if the variant is not a direct one. */
WW_API int ww_halo_start(ww_halo* halo, ww_stream* stream);
/* Completes it; a direct variant on a stream is complete when the stream has run it. Required before the next start. */
WW_API int ww_halo_finish(ww_halo* halo);
/* Start and finish. */
WW_API int ww_halo_exchange(ww_halo* halo, ww_stream* stream);
/* Collective. Errors: unavailable at all ranks, with the reason; the variant is then as before. */
WW_API int ww_halo_use(ww_halo* halo, ww_halo_variant variant);
/* The sides, by index from 0. */
WW_API int ww_halo_side_count(const ww_halo* halo, size_t* count);
WW_API int ww_halo_side_at(const ww_halo* halo, size_t index, ww_halo_side* side);
/* Collective: a variant for each side, at the rank that gives it; WW_HALO_WHOLE_FIELD, WW_HALO_STRIDED,
 * WW_HALO_GPU_AWARE cannot be mixed. Errors as ww_halo_use. */
WW_API int ww_halo_use_sides(ww_halo* halo, const ww_halo_variant* variants, size_t count);
/* Collective: exchanges by each variant in turn for so many seconds, and at least once, then by mixes where time is
 * left; then uses the fastest. */
WW_API int ww_halo_tune(ww_halo* halo, double seconds);
/* The same with a plan, or a folder of results, whose plan.json is meant. If it has a row for this shape
 * (partition, fields, types of machine of all ranks), that is used without measuring; else the answer is added. Errors:
 * invalid input for a file that cannot be read, io for one that cannot be written. */
WW_API int ww_halo_tune_file(ww_halo* halo, double seconds, const char* file);
/* The variant that is used, a ww_halo_variant. */
WW_API int ww_halo_variant_in_use(const ww_halo* halo, int* variant);
/* The variant, its time, the runner-up and the reason, in a few lines; "" for NULL. Valid until the next call. */
WW_API const char* ww_halo_explain(ww_halo* halo);
WW_API int ww_halo_counts(const ww_halo* halo, ww_halo_variant variant, ww_halo_totals* totals);
/* Where this rank's time went since the variant is in use. */
WW_API int ww_halo_times(const ww_halo* halo, ww_halo_seconds* seconds);
/* NULL is allowed. */
WW_API void ww_halo_free(ww_halo* halo);

/* GPUs, numbered like CUDA's. Errors: unavailable (no CUDA, no such GPU), device.
 * ---------------------------------------
 */

/* A view of a cudaStream_t of this program; NULL: CUDA's default stream. The stream must outlive the view. */
WW_API int ww_stream_borrow(ww_group* group, int gpu, void* cuda_stream, ww_stream** stream);
/* A new stream of a GPU. */
WW_API int ww_stream_create(ww_group* group, int gpu, ww_stream** stream);
/* Waits for the stream. Errors: also that of any failed operation of this group, on any stream. */
WW_API int ww_stream_synchronize(ww_group* group, ww_stream* stream);
/* NULL is allowed. */
WW_API void ww_stream_free(ww_stream* stream);
/* GPU memory, 256-byte aligned; freed at the latest with the last group that ww_split has made from this one. */
WW_API int ww_gpu_allocate(ww_group* group, int gpu, size_t bytes, void** memory);
/* Frees memory of ww_gpu_allocate; NULL is allowed. */
WW_API int ww_gpu_free(ww_group* group, void* memory);
/* Copies between any two memories; complete when it returns. */
WW_API int ww_gpu_copy(ww_group* group, void* to, const void* from, size_t bytes);
/* Collective: sets up what operations of up to `largest` bytes a block need on this GPU. Then the first of them waits
 * for no rank on the host and can be captured in a graph. */
WW_API int ww_gpu_prepare(ww_group* group, int gpu, size_t largest);

/* Plans, which `waywiser tune` writes: what to take for which size, for programs that move the bytes themselves. No
 * group is needed. Any number of threads may ask one plan at once. Errors: invalid input.
 * ------------
 */

/* file: plan.json; NULL: that of WAYWISER_PLAN. Errors also: unavailable if there is none. */
WW_API int ww_plan_open(const char* file, ww_plan** plan);
/* Errors also: unavailable if the plan has no row for this. */
WW_API int ww_plan_choose(const ww_plan* plan, const ww_plan_key* key, size_t bytes, ww_plan_choice* choice);
/* `partner`: hashes the machine and the rows whose partner begins with this word, "NCCL"; NULL: all of the plan. */
WW_API int ww_plan_describe(const ww_plan* plan, const char* partner, ww_plan_facts* facts);
/* NULL is allowed. */
WW_API void ww_plan_free(ww_plan* plan);
/* Looks at this machine, for up to a second; `size`: 64 or more. */
WW_API int ww_machine_fingerprint(char* fingerprint, size_t size);

/* Files, read into memory and written from it the way that a plan says is the fastest. No group is needed. Calls
 * of several threads on one file take turns. Errors: input/output, with path and offset, also if the file ends before
 * the last byte: what was read is no result then.
 * ------------
 */

/* way: "io_uring(depth=8)", this one alone; NULL: by the plan of WAYWISER_PLAN, or the defaults. Errors also: invalid
 * input, unavailable if that way does not serve the file. */
WW_API int ww_file_open(const char* path, const char* way, ww_file** file);
/* To write a new file, in the place of `path` if there is one: under a temporary name until ww_file_close. */
WW_API int ww_file_replace(const char* path, const char* way, ww_file** file);
/* From now on the data may also be in memory of this group's GPUs. What is enqueued on it must be complete. */
WW_API int ww_file_use_gpus(ww_file* file, ww_group* group);
WW_API int ww_file_size(const ww_file* file, uint64_t* bytes);
WW_API int ww_file_read(ww_file* file, uint64_t offset, void* data, size_t bytes);
WW_API int ww_file_write(ww_file* file, uint64_t offset, const void* data, size_t bytes);
/* Many parts at once: small ones are under way together. */
WW_API int ww_file_read_many(ww_file* file, const ww_file_part* parts, size_t count);
WW_API int ww_file_write_many(ww_file* file, const ww_file_part* parts, size_t count);
/* A written file is on the device under its name then. If a write or this call fails, what was there before stays. */
WW_API int ww_file_close(ww_file* file);
/* Discards what was written and not closed. NULL is allowed. */
WW_API void ww_file_free(ww_file* file);

/* Shuffles of tables in host memory: rows to the ranks that own their parts, part p to rank p % size. Each rank inserts
 * what it has and extracts its parts when all ranks have completed them; there is no barrier. A rank takes what comes
 * to it in these calls only: other calls of the group come before the first insert, or after ww_shuffle_take_all or the
 * last part. The group must outlive the shuffle, whose waits are at most as long as the group's. Batches and schemas
 * are those of Apache Arrow's C data interface: a program includes a header of Arrow's, or
 * waywiser/table/arrow_interface.h. Errors: invalid input, timeout, io; corrupt, at all ranks, if the rows of a part
 * are not those that were sent.
 * ------------
 */

/* Collective. parts: 0 for one for each rank; budget: bytes of pieces under way at this rank, out and in, 0 for 256
 * MiB; piece: bytes of rows in one message, at most, 0 for those of the plan; memory: bytes of what has come and is not
 * extracted, above which it goes to a file in the folder `spill`: 0 and NULL or "" for no limit. The schema stays the
 * caller's, and is needed until this returns. What one rank has wrong, or otherwise than rank 0, is an error at all
 * ranks before any row moves. Errors also: unavailable for a type that is not served. */
WW_API int ww_shuffle_begin(ww_group* group, const struct ArrowSchema* schema, int parts, uint64_t budget,
                            uint64_t piece, uint64_t memory, const char* spill, ww_shuffle** shuffle);
/* All rows of a batch, an array of structs of the schema, into one part. Waits for room. The batch stays the caller's,
 * and may be released when this returns. What is refused as invalid input is so at this rank alone, and has not moved.
 */
WW_API int ww_shuffle_insert(ww_shuffle* shuffle, const struct ArrowArray* batch, int part);
/* Each row by the hash of its values in these columns, of which there are `count`. Errors also: unavailable for keys
 * that have no hash. */
WW_API int ww_shuffle_insert_by(ww_shuffle* shuffle, const struct ArrowArray* batch, const int* columns, size_t count);
/* This rank inserts no more into the part; into any. */
WW_API int ww_shuffle_complete(ww_shuffle* shuffle, int part);
WW_API int ww_shuffle_finish(ww_shuffle* shuffle);
/* Waits, behind ww_shuffle_finish, until all that comes to this rank has come and all that it has sent is taken. */
WW_API int ww_shuffle_take_all(ww_shuffle* shuffle);
/* Waits for a part of this rank that all ranks have completed and of which nothing is extracted; -1 if there will be
 * none, and all that this rank has sent is taken. */
WW_API int ww_shuffle_next(ww_shuffle* shuffle, int* part);
/* The next batch of a part of this rank, by the rank that gave it, then in the order of its inserts; the first waits
 * until all ranks have completed the part. The caller owns it and calls batch->release; behind the last one, once,
 * batch->release is NULL. */
WW_API int ww_shuffle_extract(ww_shuffle* shuffle, int part, struct ArrowArray* batch);
/* NULL is allowed. A shuffle that is not over ends the group. */
WW_API void ww_shuffle_free(ww_shuffle* shuffle);

/* GPUs of other machines: see docs/howto-remote.md. Arrays there have numbers, which are never used twice.
 * ww_remote_zeros, ww_remote_array, ww_remote_put, ww_remote_run, ww_remote_launch, ww_remote_record, ww_remote_wait
 * and ww_remote_release do not wait for the server: the error of a request that fails there is returned by the next
 * call that waits, and the requests between them are not carried out. One thread at a time may use a GPU: a call
 * that another thread's call meets returns invalid input. Each thread may open one. Errors: invalid input, device,
 * timeout; io if the server has gone.
 * ------------------
 */

/* The GPU number `gpu` of the server at "HOST:PORT". key: the file with the key; NULL: the usual one. timeout: of every
 * call, in seconds. */
WW_API int ww_remote_open(const char* address, const char* key, int gpu, double timeout, ww_remote** remote);
/* Frees the arrays there. NULL is allowed. */
WW_API void ww_remote_free(ww_remote* remote);
/* A new array of `count` zeros. */
WW_API int ww_remote_zeros(ww_remote* remote, size_t count, ww_type type, uint64_t* array);
/* A new array with a copy of `data`, in host memory, which may be changed again on return. */
WW_API int ww_remote_array(ww_remote* remote, const void* data, size_t count, ww_type type, uint64_t* array);
/* Writes bytes of an array, from `offset`. */
WW_API int ww_remote_put(ww_remote* remote, uint64_t array, size_t offset, const void* data, size_t bytes);
/* Waits. The whole array, whose type and number of elements must be these. */
WW_API int ww_remote_get(ww_remote* remote, uint64_t array, void* data, size_t count, ww_type type);
/* Zeroed memory for arrays of this program: ww_remote_array, ww_remote_put and ww_remote_get use it as any other. A
 * server on this machine copies from and into it itself; then these calls wait for the copy. Waits as
 * ww_remote_synchronize. ww_remote_unpin and ww_remote_free end it. */
WW_API int ww_remote_pinned(ww_remote* remote, size_t bytes, void** data);
WW_API int ww_remote_unpin(ww_remote* remote, void* data);
/* "server": mapped there, and page-locked for its GPU; "lock": page-locked; "": ordinary memory. Never NULL. */
WW_API const char* ww_remote_pinned_by(const ww_remote* remote, const void* data);
/* An array, a stream or an event. */
WW_API int ww_remote_release(ww_remote* remote, uint64_t number);
/* A function of the server: of `count` arrays, and of numbers by name, which may be NULL and 0. */
WW_API int ww_remote_run(ww_remote* remote, const char* function, const uint64_t* arrays, size_t count,
                         const ww_remote_number* numbers, size_t number_count, uint64_t* result);
/* Kernels that run there: CUDA source, PTX or a cubin, of at most 4 MiB. Waits until they are compiled. Errors also:
 * unavailable if the GPU is virtual, the server has no NVRTC, or it runs only built-in functions. */
WW_API int ww_remote_load_kernels(ww_remote* remote, const void* code, size_t bytes, uint64_t* kernels);
/* Runs a kernel of these; its arguments are checked there, by their number and types. */
WW_API int ww_remote_launch(ww_remote* remote, uint64_t kernels, const char* kernel, const ww_remote_shape* shape,
                            const ww_remote_argument* arguments, size_t count);
/* A copy here of an array of another remote GPU, of the same server or another one. It does not pass through this
 * program. Waits as ww_remote_synchronize on both, and not for the copy. */
WW_API int ww_remote_copy_of(ww_remote* remote, ww_remote* other, uint64_t array, uint64_t* copy);
/* A new stream. After ww_remote_use_stream, functions and kernels run in it, one after the other and beside those of
 * other streams, and ww_remote_put, ww_remote_get and ww_remote_synchronize wait for it only. Stream 0, at first the
 * only one, is ordered with all others. */
WW_API int ww_remote_stream(ww_remote* remote, uint64_t* stream);
WW_API int ww_remote_use_stream(ww_remote* remote, uint64_t stream);
/* A new event. ww_remote_record: it happens when all earlier calls of the stream are over. ww_remote_wait: later calls
 * of the stream wait for it. ww_remote_await waits for it. ww_remote_since waits for both, and tells the seconds
 * between them by the GPU's clock. */
WW_API int ww_remote_event(ww_remote* remote, uint64_t* event);
WW_API int ww_remote_record(ww_remote* remote, uint64_t event);
WW_API int ww_remote_wait(ww_remote* remote, uint64_t event);
WW_API int ww_remote_await(ww_remote* remote, uint64_t event);
WW_API int ww_remote_since(ww_remote* remote, uint64_t later, uint64_t earlier, double* seconds);
/* The bytes of arrays go to and from another machine unencrypted from now on. Errors also: unavailable if the server
 * was started without --data-plain. */
WW_API int ww_remote_use_plain_data(ww_remote* remote);
/* Sends the requests for which there was no room at the server. */
WW_API int ww_remote_flush(ww_remote* remote);
/* Waits until all requests have been carried out: of the stream, and of all in stream 0. */
WW_API int ww_remote_synchronize(ww_remote* remote);

#ifdef __cplusplus
}
#endif

#endif
