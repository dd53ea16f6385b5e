/* The calls of host_calls_benchmark.cpp, said in MPI and timed alike: ns a call, lower quartile of samples.
   mpicc -O3 host_calls_openmpi.c -o host_calls_openmpi; mpirun -n 2 --bind-to none host_calls_openmpi [BYTES [CALLS]]
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SAMPLES = 41, WINDOW = 64 };

static int rank, other, count, bytes;
static float *in, *out, *all;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void broadcast(void) { MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void all_reduce(void) { MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void all_gather(void) { MPI_Allgather(in, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD); }
static void latency(void) {
  if (rank == 0) MPI_Send(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
  MPI_Recv(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}
static void bandwidth(void) {
  MPI_Request begun[WINDOW];
  for (int i = 0; i < WINDOW; ++i)
    if (rank == 0)
      MPI_Isend(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &begun[i]);
    else
      MPI_Irecv(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &begun[i]);
  MPI_Waitall(WINDOW, begun, MPI_STATUSES_IGNORE);
  if (rank == 0)
    MPI_Recv(out, sizeof *out, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(out, sizeof *out, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

typedef struct {
  const char* name;
  int parts;
  void (*call)(void);
  float in_out; /* what every element of `out` is at rank 1 afterwards; 0: not looked at */
} Timed;
static const Timed calls[] = {{"barrier", 1, barrier, 0},       {"broadcast", 1, broadcast, 7},
                              {"all_reduce", 1, all_reduce, 3}, {"all_gather", 1, all_gather, 0},
                              {"latency", 2, latency, 1},       {"bandwidth", WINDOW, bandwidth, 1}};

static int compare(const void* a, const void* b) {
  const double one = *(const double*)a, two = *(const double*)b;
  return one < two ? -1 : one > two;
}

static int is_right(const Timed* timed) {
  for (int i = 0; i < count; ++i) {
    if (rank == 1 && timed->in_out != 0 && out[i] != timed->in_out) return 0;
    if (timed->call == all_gather && (all[i] != 1 || all[count + i] != 2)) return 0;
  }
  return 1;
}

static float* array(int elements) {
  void* made = NULL;
  if (posix_memalign(&made, 4096, (size_t)elements * sizeof(float)) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  return made;
}

int main(int words, char** word) {
  MPI_Init(&words, &word);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(rank, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) fprintf(stderr, "host_calls_openmpi: not pinned\n");
  count = words > 1 ? atoi(word[1]) / (int)sizeof(float) : 2;
  const int repetitions = words > 2 ? atoi(word[2]) : 1000;
  if (count < 1 || repetitions < 1) {
    fprintf(stderr, "host_calls_openmpi: BYTES are 4 at least, CALLS above 0\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bytes = count * (int)sizeof(float);
  in = array(count), out = array(count), all = array(2 * count);
  for (int i = 0; i < count; ++i) in[i] = (float)(rank + 1);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    double times[SAMPLES];
    const int made = repetitions / calls[i].parts > 0 ? repetitions / calls[i].parts : 1;
    for (int k = 0; k < 2 * count; ++k) all[k] = 0;
    for (int k = 0; k < count; ++k) out[k] = rank == 0 ? 7 : 0;
    for (int sample = -1; sample < SAMPLES; ++sample) { /* the first does not count */
      barrier();
      const double start = now();
      for (int k = 0; k < made; ++k) calls[i].call();
      barrier();
      if (sample >= 0) times[sample] = (now() - start) / made / calls[i].parts;
    }
    qsort(times, SAMPLES, sizeof *times, compare);
    if (rank == 0) printf("%-10s %8d B %9.1f ns\n", calls[i].name, bytes, 1e9 * times[SAMPLES / 4]);
    if (is_right(&calls[i])) continue;
    fprintf(stderr, "host_calls_openmpi: rank %d has wrong values after %s\n", rank, calls[i].name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
