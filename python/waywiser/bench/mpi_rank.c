/* A rank of an MPI library beside `waywiser bench`: the same steps as src/waywiser/bench, said in MPI.
   mpi_rank SOCKET: slices come over a Unix socket. mpi_rank join: initialises, and that is all. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WINDOW = 4096, WARM_UP = 50, PERIOD = 16, LOOKS = 16 };

typedef struct {
  char operation[64];
  size_t bytes;
  int window, calls, samples;
  uint64_t seed;
  double compute;
} Request;

typedef struct {
  char *in, *out; /* what this rank gives, what it takes */
  size_t in_bytes, out_bytes;
  MPI_Win window;
} Buffers;

static int rank, size, other, taking_part, first;
static MPI_Request under_way[2 * MOST_WINDOW];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char* why) {
  fprintf(stderr, "mpi_rank: rank %d: %s\n", rank, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The pattern of kernels/pattern_body.hpp. */
static uint64_t pattern(uint64_t seed, uint64_t word) {
  uint64_t mixed = seed + (word + 1) * 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
  return mixed ^ (mixed >> 31);
}

static void fill(char* data, size_t bytes, uint64_t seed) {
  uint64_t value = 0;
  for (size_t at = 0; at < bytes; at += 8) {
    value = pattern(seed, at / 8);
    memcpy(data + at, &value, bytes - at < 8 ? bytes - at : 8);
  }
}

static int wrong(const char* data, size_t bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t value = pattern(seed, at / 8);
    if (memcmp(data + at, &value, bytes - at < 8 ? bytes - at : 8) != 0) return 1;
  }
  return 0;
}

static void fill_numbers(char* data, size_t bytes, uint64_t start) {
  float* values = (float*)data;
  for (size_t i = 0; i < bytes / 4; ++i) values[i] = (float)((start + i) % PERIOD);
}

static int wrong_sums(const char* data, size_t bytes, uint64_t start, int ranks, size_t offset) {
  const float* values = (const float*)data;
  float sums[PERIOD] = {0};
  for (int i = 0; i < PERIOD; ++i)
    for (int r = 0; r < ranks; ++r) sums[i] += (float)((start + (uint64_t)r + offset + (uint64_t)i) % PERIOD);
  for (size_t i = 0; i < bytes / 4; ++i)
    if (values[i] != sums[i % PERIOD]) return 1;
  return 0;
}

static int is(const Request* r, const char* name) { return strcmp(r->operation, name) == 0; }
static int is_put(const Request* r) { return is(r, "put") || is(r, "put_bandwidth"); }
static int is_get(const Request* r) { return is(r, "get") || is(r, "get_bandwidth"); }
static int is_multi(const Request* r) { return strncmp(r->operation, "multi_", 6) == 0; }
static int is_ping_pong(const Request* r) { return is(r, "latency") || is(r, "multi_latency"); }
static int is_two_way(const Request* r) { return is(r, "bidirectional") || is(r, "overlap"); }
static int is_one_way(const Request* r) {
  return is(r, "bandwidth") || is(r, "message_rate") || is(r, "multi_bandwidth");
}
static int is_message(const Request* r) { return is_ping_pong(r) || is_two_way(r) || is_one_way(r); }
static int is_sum(const Request* r) {
  return is(r, "reduce") || is(r, "all_reduce") || is(r, "reduce_scatter") || is(r, "scan") ||
         is(r, "exscan") || is(r, "overlap_all_reduce");
}
static int is_moving(const Request* r) {
  return is(r, "broadcast") || is(r, "all_gather") || is(r, "all_to_all") || is(r, "gather") || is(r, "scatter") ||
         is(r, "neighbor_exchange") || is(r, "barrier");
}

static uint64_t seed_of(uint64_t seed, int from, int to) {
  return seed + 1000003u * (uint64_t)from + 7919u * (uint64_t)to;
}

static void compute(double seconds, int count) {
  const double start = now();
  int done = 0;
  for (int part = 1; part <= LOOKS; ++part) {
    while (now() < start + seconds * part / LOOKS) continue;
    if (!done && seconds > 0) MPI_Testall(count, under_way, &done, MPI_STATUSES_IGNORE);
  }
}

static void message_call(const Request* r, Buffers* b) {
  char answer[4] = {0};
  const int n = (int)r->bytes;
  if (is_ping_pong(r)) {
    if (first) MPI_Send(b->in, n, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    MPI_Recv(b->out, n, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first) MPI_Send(b->in, n, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    return;
  }
  int count = 0;
  for (int i = 0; i < r->window && (is_two_way(r) || !first); ++i)
    MPI_Irecv(b->out, n, MPI_BYTE, other, 0, MPI_COMM_WORLD, &under_way[count++]);
  for (int i = 0; i < r->window && (is_two_way(r) || first); ++i)
    MPI_Isend(b->in, n, MPI_BYTE, other, 0, MPI_COMM_WORLD, &under_way[count++]);
  if (is(r, "overlap")) compute(r->compute, count);
  MPI_Waitall(count, under_way, MPI_STATUSES_IGNORE);
  if (is(r, "overlap")) return;
  if (first)
    MPI_Recv(answer, 4, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(answer, 4, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

static void one_sided_call(const Request* r, Buffers* b) {
  const int n = (int)r->bytes;
  for (int i = 0; i < r->window; ++i) {
    if (is_put(r))
      MPI_Put(b->in, n, MPI_BYTE, 1, 0, n, MPI_BYTE, b->window);
    else
      MPI_Get(b->out, n, MPI_BYTE, 1, 0, n, MPI_BYTE, b->window);
  }
  MPI_Win_flush(1, b->window);
}

static void neighbor_call(int n, Buffers* b) {
  const int after = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Irecv(b->out, n, MPI_BYTE, before, 1, MPI_COMM_WORLD, &under_way[0]);
  MPI_Irecv(b->out + n, n, MPI_BYTE, after, 0, MPI_COMM_WORLD, &under_way[1]);
  MPI_Isend(b->in, n, MPI_BYTE, before, 0, MPI_COMM_WORLD, &under_way[2]);
  MPI_Isend(b->in + n, n, MPI_BYTE, after, 1, MPI_COMM_WORLD, &under_way[3]);
  MPI_Waitall(4, under_way, MPI_STATUSES_IGNORE);
}

static void collective_call(const Request* r, Buffers* b) {
  const int n = (int)r->bytes, floats = n / 4;
  MPI_Comm all = MPI_COMM_WORLD;
  if (is(r, "barrier")) MPI_Barrier(all);
  if (is(r, "broadcast")) MPI_Bcast(b->out, n, MPI_BYTE, 0, all);
  if (is(r, "reduce")) MPI_Reduce(b->in, b->out, floats, MPI_FLOAT, MPI_SUM, 0, all);
  if (is(r, "all_reduce")) MPI_Allreduce(b->in, b->out, floats, MPI_FLOAT, MPI_SUM, all);
  if (is(r, "reduce_scatter")) MPI_Reduce_scatter_block(b->in, b->out, floats, MPI_FLOAT, MPI_SUM, all);
  if (is(r, "scan")) MPI_Scan(b->in, b->out, floats, MPI_FLOAT, MPI_SUM, all);
  if (is(r, "exscan")) MPI_Exscan(b->in, b->out, floats, MPI_FLOAT, MPI_SUM, all);
  if (is(r, "all_gather")) MPI_Allgather(b->in, n, MPI_BYTE, b->out, n, MPI_BYTE, all);
  if (is(r, "all_to_all")) MPI_Alltoall(b->in, n, MPI_BYTE, b->out, n, MPI_BYTE, all);
  if (is(r, "gather")) MPI_Gather(b->in, n, MPI_BYTE, b->out, n, MPI_BYTE, 0, all);
  if (is(r, "scatter")) MPI_Scatter(b->in, n, MPI_BYTE, b->out, n, MPI_BYTE, 0, all);
  if (is(r, "neighbor_exchange")) neighbor_call(n, b);
  if (is(r, "overlap_all_reduce")) {
    MPI_Iallreduce(b->in, b->out, floats, MPI_FLOAT, MPI_SUM, all, under_way);
    compute(r->compute, 1);
    MPI_Waitall(1, under_way, MPI_STATUSES_IGNORE);
  }
}

static void run(const Request* r, Buffers* b, int calls) {
  const int one_sided = is_put(r) || is_get(r);
  for (int i = 0; i < calls; ++i) {
    if (is_message(r) && taking_part) message_call(r, b);
    if (one_sided && rank == 0) one_sided_call(r, b);
    if (!is_message(r) && !one_sided) collective_call(r, b);
  }
  if (one_sided) MPI_Barrier(MPI_COMM_WORLD);
}

static void prepare(const Request* r, Buffers* b, uint64_t seed) {
  const size_t n = r->bytes;
  if (is_message(r) || is_put(r) || is_get(r) || is(r, "all_gather") || is(r, "gather"))
    fill(b->in, n, seed_of(seed, rank, 0));
  if (is_get(r)) memcpy(b->out, b->in, n);
  if (is(r, "broadcast")) fill(b->out, n, seed_of(seed, rank == 0 ? 0 : size, 0));
  if (is(r, "all_to_all") || (is(r, "scatter") && rank == 0))
    for (int to = 0; to < size; ++to) fill(b->in + (size_t)to * n, n, seed_of(seed, rank, to));
  if (is(r, "neighbor_exchange"))
    for (int side = 0; side < 2; ++side) fill(b->in + (size_t)side * n, n, seed_of(seed, rank, side));
  if (is_sum(r)) fill_numbers(b->in, b->in_bytes / 4 * 4, (seed & 0xffff) + (uint64_t)rank);
}

static int check(const Request* r, const Buffers* b, uint64_t seed) {
  const size_t n = r->bytes, floats = n / 4;
  int bad = 0;
  if (is_message(r) && taking_part && !(is_one_way(r) && first)) bad = wrong(b->out, n, seed_of(seed, other, 0));
  if (is_put(r) && rank == 1) bad = wrong(b->out, n, seed_of(seed, 0, 0));
  if (is_get(r) && rank == 0) bad = wrong(b->out, n, seed_of(seed, 1, 0));
  if (is(r, "broadcast")) bad = wrong(b->out, n, seed_of(seed, 0, 0));
  if (is(r, "scatter")) bad = wrong(b->out, n, seed_of(seed, 0, rank));
  for (int from = 0; from < size; ++from) {
    if (is(r, "all_gather") || (is(r, "gather") && rank == 0))
      bad |= wrong(b->out + (size_t)from * n, n, seed_of(seed, from, 0));
    if (is(r, "all_to_all")) bad |= wrong(b->out + (size_t)from * n, n, seed_of(seed, from, rank));
  }
  if (is(r, "neighbor_exchange"))
    bad = wrong(b->out, n, seed_of(seed, (rank + size - 1) % size, 1)) |
          wrong(b->out + n, n, seed_of(seed, (rank + 1) % size, 0));
  if (is_sum(r) && !(is(r, "reduce") && rank != 0) && !(is(r, "exscan") && rank == 0))
    bad = wrong_sums(b->out, floats * 4, seed & 0xffff, is(r, "scan") ? rank + 1 : is(r, "exscan") ? rank : size,
                     is(r, "reduce_scatter") ? (size_t)rank * floats : 0);
  return bad;
}

static Buffers make_buffers(const Request* r) {
  Buffers b = {0};
  const int many_in = is(r, "all_to_all") || is(r, "scatter") || is(r, "reduce_scatter");
  const int many_out = is(r, "all_to_all") || is(r, "gather") || is(r, "all_gather");
  const size_t two = is(r, "neighbor_exchange") ? 2 : 1;
  b.in_bytes = (is(r, "reduce_scatter") ? r->bytes / 4 * 4 : r->bytes) * (many_in ? (size_t)size : two);
  b.out_bytes = r->bytes * (many_out ? (size_t)size : two);
  b.window = MPI_WIN_NULL;
  if (posix_memalign((void**)&b.in, 4096, b.in_bytes + 1) || posix_memalign((void**)&b.out, 4096, b.out_bytes + 1))
    stop("no memory");
  memset(b.in, 1, b.in_bytes + 1);
  memset(b.out, 2, b.out_bytes + 1);
  if (is_put(r) || is_get(r)) {
    MPI_Win_create(b.out, (MPI_Aint)r->bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b.window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, b.window);
  }
  return b;
}

static void free_buffers(Buffers* b) {
  if (b->window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(b->window);
    MPI_Win_free(&b->window);
  }
  free(b->in);
  free(b->out);
  memset(b, 0, sizeof *b);
  b->window = MPI_WIN_NULL;
}

static void pair_up(const Request* r) {
  const int half = is_multi(r) ? size / 2 : 1;
  taking_part = rank < 2 * half;
  first = rank < half;
  other = first ? rank + half : rank - half;
}

static void slice(const Request* r, Buffers* b, FILE* answers) {
  double* times = malloc((size_t)r->samples * sizeof *times);
  if (times == NULL) stop("no memory");
  prepare(r, b, r->seed);
  MPI_Barrier(MPI_COMM_WORLD);
  run(r, b, r->calls < WARM_UP ? r->calls : WARM_UP);
  for (int sample = 0; sample < r->samples; ++sample) {
    const uint64_t seed = r->seed + 1 + (uint64_t)sample;
    prepare(r, b, seed);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    run(r, b, r->calls);
    times[sample] = (now() - start) / r->calls;
    if (check(r, b, seed)) stop("what arrived is not what was sent");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  fprintf(answers, "times");
  for (int sample = 0; sample < r->samples; ++sample) fprintf(answers, " %.9g", times[sample]);
  fprintf(answers, "\n");
  free(times);
}

static int read_request(const char* line, Request* r) {
  unsigned long long bytes, seed, nanoseconds;
  if (sscanf(line, "run %63s %*s %*s %llu %d %d %d %llu %llu", r->operation, &bytes, &r->window, &r->calls, &r->samples,
             &seed, &nanoseconds) != 7)
    return 0;
  r->bytes = bytes;
  r->seed = seed;
  r->compute = 1e-9 * (double)nanoseconds;
  return r->window > 0 && r->window <= MOST_WINDOW && r->calls > 0 && r->samples > 0;
}

static void serve(FILE* requests, FILE* answers) {
  char line[512], version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  Request r, known = {0};
  Buffers b = {0};
  b.window = MPI_WIN_NULL;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = 0;
  fprintf(answers, "hello %d %d %s\n", rank, size, version);
  while (fflush(answers) == 0 && fgets(line, sizeof line, requests) != NULL && strncmp(line, "run ", 4) == 0) {
    if (!read_request(line, &r)) stop("a request that it does not understand");
    if (!is_message(&r) && !is_sum(&r) && !is_moving(&r) && !is_put(&r) && !is_get(&r)) {
      fprintf(answers, "unavailable no %s\n", r.operation);
      continue;
    }
    if (r.bytes > (size_t)0x7fffffff) {
      fprintf(answers, "unavailable counts are limited to 2 GiB\n");
      continue;
    }
    pair_up(&r);
    if (strcmp(known.operation, r.operation) != 0 || known.bytes != r.bytes || b.in == NULL) {
      free_buffers(&b);
      b = make_buffers(&r);
    }
    known = r;
    slice(&r, &b, answers);
  }
  free_buffers(&b);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (count == 2 && strcmp(words[1], "join") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("joined");
  } else if (count == 2) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int line = socket(AF_UNIX, SOCK_STREAM, 0);
    if (strlen(words[1]) >= sizeof address.sun_path) stop("the socket's path is too long");
    strcpy(address.sun_path, words[1]);
    if (connect(line, (struct sockaddr*)&address, sizeof address) != 0) stop("nobody conducts");
    serve(fdopen(dup(line), "r"), fdopen(line, "w"));
  }
  MPI_Finalize();
  return 0;
}
