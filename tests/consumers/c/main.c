/* Calls every function of waywiser/c/waywiser.h, with any number of ranks of one machine, and says what is not as it
 * should be. */
#include <stdio.h>
#include <string.h>
#include <waywiser/c/waywiser.h>

enum { ranks_at_most = 8, count = 5, all = ranks_at_most * count };

static ww_group* group;
static int rank, size, problems;

static void report(int right, const char* what, int line) {
  if (right) return;
  ++problems;
  fprintf(stderr, "rank %d, line %d: %s (%s)\n", rank, line, what, ww_error_text());
}
#define CHECK(what) report((what) != 0, #what, __LINE__)
#define DO(call) report((call) == WW_OK, #call, __LINE__)

static void check_refused(int code, int expected, const char* words, int line) {
  if (code == expected && strstr(ww_error_text(), words) != NULL) return;
  ++problems;
  fprintf(stderr, "rank %d, line %d: %s: '%s', not %s with '%s'\n", rank, line, ww_error_name(code), ww_error_text(),
          ww_error_name(expected), words);
}
#define REFUSED(call, code, words) check_refused(call, code, words, __LINE__)

/* What rank `from` has at `index`. */
static double value(int from, int index) { return 100.0 * from + index; }

static void fill(double* data, int from, int elements) {
  for (int i = 0; i < elements; ++i) data[i] = value(from, i);
}

static double sum_of_ranks(int index) {
  double sum = 0;
  for (int from = 0; from < size; ++from) sum += value(from, index);
  return sum;
}

static void names(void) {
  CHECK(strcmp(ww_error_text(), "") == 0);
  CHECK(strcmp(ww_error_name(WW_TIMEOUT), "timeout") == 0);
  CHECK(strcmp(ww_error_name(-3), "no error of waywiser") == 0);
  CHECK(strchr(ww_version(), '.') != NULL);
  CHECK(ww_type_size(WW_FLOAT64) == 8 && ww_type_size(WW_BFLOAT16) == 2 && ww_type_size((ww_type)99) == 0);
  CHECK(ww_type_size(WW_COMPLEX128) == 16 && ww_type_size(WW_FLOAT8_E5M2) == 1 && ww_type_size((ww_type)16) == 0);
  CHECK(ww_rank(NULL) == -1 && ww_size(NULL) == 0 && ww_timeout(NULL) == 0);
}

// Every collective that can be prepared, twice.
static void prepare_collectives(void) {
  static const char* const names[] = {"all_reduce", "reduce", "reduce_scatter", "broadcast", "all_gather",
                                      "all_to_all", "gather", "scatter",        "scan",      "exscan"};
  for (int which = 0; which < 10; ++which) {
    double input[all], output[all];
    ww_prepared* prepared = NULL;
    DO(ww_prepare_collective(group, names[which], input, output, count, WW_FLOAT64, WW_MAX, 0, &prepared));
    for (int start = 0; start < 2; ++start) {
      fill(input, rank + start, all);
      fill(output, which == 3 ? rank + start : 1000, all);
      DO(ww_prepared_start(prepared, NULL));
      DO(ww_prepared_wait(prepared));
      const double highest = value(size - 1 + start, 1), lowest = value(start, 1), none = value(1000, 1);
      const double wanted[] = {highest,
                               rank == 0 ? highest : none,
                               value(size - 1 + start, rank * count + 1),
                               lowest,
                               lowest,
                               value(start, rank * count + 1),
                               rank == 0 ? lowest : none,
                               value(start, rank * count + 1),
                               value(rank + start, 1),
                               rank == 0 ? none : value(rank - 1 + start, 1)};
      CHECK(output[1] == wanted[which]);
    }
    ww_prepared_free(prepared);
  }
  ww_prepared* none = NULL;
  REFUSED(ww_prepare_collective(group, "barrier", NULL, NULL, 0, WW_FLOAT64, WW_SUM, 0, &none), WW_INVALID_INPUT,
          "barrier is no collective of two arrays");
  CHECK(none == NULL);
}

// The messages come in the reverse of the order in which they are waited for.
static void several_futures(int before, int next) {
  double came[3] = {-1, -1, -1}, sent[3] = {10, 11, 12};
  ww_future* futures[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) DO(ww_recv(group, &came[i], 1, WW_FLOAT64, before, 20 + i, ww_begin(&futures[i])));
  for (int i = 2; i >= 0; --i) DO(ww_send(group, &sent[i], 1, WW_FLOAT64, next, 20 + i, WW_WAIT));
  size_t place = 3;
  DO(ww_wait_any(futures, 3, &place));
  CHECK(place < 3 && came[place] == 10 + (double)place);
  ww_future_free(futures[place]);
  futures[place] = NULL;
  DO(ww_wait_all(futures, 3));
  for (int i = 0; i < 3; ++i) {
    CHECK(came[i] == 10 + i);
    ww_future_free(futures[i]);
    futures[i] = NULL;
  }
  REFUSED(ww_wait_any(futures, 3, &place), WW_INVALID_INPUT, "there is no future");
}

static void messages(void) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  double mine[count], theirs[count] = {0};
  fill(mine, rank, count);
  DO(ww_sendrecv(group, mine, count, next, theirs, count, before, WW_FLOAT64, 3, WW_WAIT));
  CHECK(theirs[count - 1] == value(before, count - 1));

  int32_t number = -1;
  if (rank == 0) {
    number = 4711;
    for (int to = 1; to < size; ++to) DO(ww_send(group, &number, 1, WW_INT32, to, 7, WW_WAIT));
  } else {
    DO(ww_recv(group, &number, 1, WW_INT32, 0, 7, WW_WAIT));
  }
  CHECK(number == 4711);

  ww_message_status status;
  int found = 0;
  memset(theirs, 0, sizeof theirs);
  DO(ww_send(group, mine, count, WW_FLOAT64, next, 8, WW_WAIT));
  DO(ww_probe(group, WW_ANY_SOURCE, WW_ANY_TAG, &status));
  CHECK(status.source == before && status.tag == 8 && status.type == WW_FLOAT64 && status.count == (size_t)count);
  DO(ww_recv_status(group, theirs, count, WW_FLOAT64, WW_ANY_SOURCE, WW_ANY_TAG, &status, WW_WAIT));
  CHECK(status.source == before && theirs[count - 1] == value(before, count - 1));
  DO(ww_iprobe(group, WW_ANY_SOURCE, 8, 0, &found, &status));
  CHECK(found == 0);

  ww_message* message = NULL;
  DO(ww_send(group, mine, count, WW_FLOAT64, next, 18, WW_WAIT));
  DO(ww_mprobe(group, before, 18, -1, &status, &message));
  DO(ww_iprobe(group, WW_ANY_SOURCE, 18, 0, &found, &status));
  CHECK(found == 0);
  memset(theirs, 0, sizeof theirs);
  REFUSED(ww_mrecv(message, theirs, count - 1, WW_FLOAT64), WW_INVALID_INPUT, "into 4 float64");
  DO(ww_mrecv(message, theirs, count, WW_FLOAT64));
  CHECK(status.source == before && theirs[count - 1] == value(before, count - 1));
  ww_message_free(message);
  DO(ww_mprobe(group, before, 18, 0, &status, &message));
  CHECK(message == NULL);
  ww_message_free(message);

  ww_future *sent = NULL, *received = NULL;
  memset(theirs, 0, sizeof theirs);
  DO(ww_recv(group, theirs, count, WW_FLOAT64, before, 9, ww_begin(&received)));
  DO(ww_send(group, mine, count, WW_FLOAT64, next, 9, ww_begin(&sent)));
  int done = 0;
  while (!done) {
    if (ww_future_test(received, &done) != WW_OK) break;
  }
  CHECK(done == 1);
  DO(ww_future_wait(sent));
  ww_future_free(sent);
  ww_future_free(received);
  ww_future_free(NULL);
  CHECK(theirs[1] == value(before, 1));
  several_futures(before, next);

  double from_left = 0, from_right = 0;
  const ww_exchange neighbors[] = {{before, &mine[0], 1, WW_FLOAT64, 0, &from_left, 1, WW_FLOAT64, 1},
                                   {next, &mine[count - 1], 1, WW_FLOAT64, 1, &from_right, 1, WW_FLOAT64, 0}};
  DO(ww_neighbor_exchange(group, neighbors, 2, WW_WAIT));
  CHECK(from_left == value(before, count - 1) && from_right == value(next, 0));

  ww_prepared* prepared = NULL;
  DO(ww_prepare_exchange(group, neighbors, 2, &prepared));
  for (int start = 0; start < 3; ++start) {
    from_left = from_right = 0;
    DO(ww_prepared_start(prepared, NULL));
    DO(ww_prepared_wait(prepared));
    CHECK(from_left == value(before, count - 1) && from_right == value(next, 0));
  }
  ww_prepared_free(prepared);
  ww_prepared_free(NULL);
  prepare_collectives();
}

// (0 + i) of each rank but the first, which has 1.
static void other_types(void) {
  const float turn[] = {rank == 0, rank != 0};
  float product[2] = {0};
  CHECK(ww_all_reduce(group, turn, product, 1, WW_COMPLEX64, WW_MIN, WW_WAIT) == WW_INVALID_INPUT);
  CHECK(strcmp(ww_error_text(), "all_reduce: there is no min of complex64, which has no order") == 0);
  DO(ww_all_reduce(group, turn, product, 1, WW_COMPLEX64, WW_PROD, WW_WAIT));
  const int turns = (size - 1) % 4;
  CHECK(product[0] == (turns == 0) - (turns == 2) && product[1] == (turns == 1) - (turns == 3));

  const uint64_t large = UINT64_MAX - (uint64_t)rank;
  uint64_t largest = 0;
  DO(ww_all_reduce(group, &large, &largest, 1, WW_UINT64, WW_MAX, WW_WAIT));
  CHECK(largest == UINT64_MAX);
  const uint8_t one = 0x38; /* 1 of float8_e4m3fn; 2 is 0x40 and 3 is 0x44 */
  uint8_t sum = 0;
  DO(ww_all_reduce(group, &one, &sum, 1, WW_FLOAT8_E4M3FN, WW_SUM, WW_WAIT));
  CHECK(size > 3 || sum == (size == 1 ? 0x38 : size == 2 ? 0x40 : 0x44));
}

/* Of rank + 1 and of rank. */
static void operations_of_integers(void) {
  static const ww_op operations[] = {WW_BAND, WW_BOR, WW_BXOR, WW_LAND, WW_LOR, WW_LXOR};
  const uint16_t mine[] = {(uint16_t)(rank + 1), (uint16_t)rank};
  for (int which = 0; which < 6; ++which) {
    uint16_t out[] = {99, 99};
    DO(ww_all_reduce(group, mine, out, 2, WW_UINT16, operations[which], WW_WAIT));
    for (int i = 0; i < 2; ++i) {
      int wanted = 1 - i;
      for (int from = 1; from < size; ++from) {
        const int other = from + 1 - i;
        const int next[] = {wanted & other,  wanted | other,  wanted ^ other,
                            wanted && other, wanted || other, (wanted != 0) != (other != 0)};
        wanted = next[which];
      }
      CHECK(out[i] == wanted);
    }
  }
}

static void scans(void) {
  const int64_t mine[] = {rank + 1, rank == 0, 1 << rank}, at[] = {7 + rank, -rank, 3};
  int64_t out[3] = {-1, -1, -1}, found[3], found_at[3];
  DO(ww_scan(group, mine, out, 3, WW_INT64, WW_SUM, WW_WAIT));
  CHECK(out[0] == (rank + 1) * (rank + 2) / 2 && out[1] == 1 && out[2] == (2 << rank) - 1);
  DO(ww_exscan(group, mine, rank == 0 ? NULL : out, 3, WW_INT64, WW_BOR, WW_WAIT));
  CHECK(rank == 0 || out[2] == (1 << rank) - 1);
  DO(ww_minloc(group, mine, at, found, found_at, 3, WW_INT64));
  CHECK(found[0] == 1 && found_at[0] == 7 && found[1] == (size == 1) && found_at[1] == 1 - size && found_at[2] == 3);
  DO(ww_maxloc(group, mine, at, found, found_at, 3, WW_INT64));
  CHECK(found[0] == size && found_at[0] == 6 + size && found[1] == 1 && found_at[1] == 0);
}

static void collectives(void) {
  double mine[all], out[all];
  const int root = size - 1;
  fill(mine, rank, all);

  DO(ww_barrier(group, WW_WAIT));
  memcpy(out, mine, sizeof out);
  DO(ww_broadcast(group, out, count, WW_FLOAT64, root, WW_WAIT));
  CHECK(out[2] == value(root, 2));
  DO(ww_reduce(group, mine, rank == root ? out : NULL, count, WW_FLOAT64, WW_SUM, root, WW_WAIT));
  CHECK(rank != root || out[4] == sum_of_ranks(4));
  DO(ww_all_reduce(group, mine, out, count, WW_FLOAT64, WW_MAX, WW_WAIT));
  CHECK(out[3] == value(size - 1, 3));
  ww_future* future = NULL;
  DO(ww_all_reduce(group, mine, out, count, WW_FLOAT64, WW_SUM, ww_begin(&future)));
  DO(ww_future_wait(future));
  ww_future_free(future);
  CHECK(out[1] == sum_of_ranks(1));
  DO(ww_reduce_scatter(group, mine, out, count, WW_FLOAT64, WW_SUM, WW_WAIT));
  CHECK(out[1] == sum_of_ranks(rank * count + 1));
  DO(ww_all_gather(group, mine, out, count, WW_FLOAT64, WW_WAIT));
  for (int from = 0; from < size; ++from) CHECK(out[from * count + 2] == value(from, 2));
  DO(ww_all_to_all(group, mine, out, count, WW_FLOAT64, WW_WAIT));
  for (int from = 0; from < size; ++from) CHECK(out[from * count + 1] == value(from, rank * count + 1));
  DO(ww_gather(group, mine, rank == root ? out : NULL, count, WW_FLOAT64, root, WW_WAIT));
  for (int from = 0; from < size; ++from) CHECK(rank != root || out[from * count + 4] == value(from, 4));
  DO(ww_scatter(group, rank == root ? mine : NULL, out, count, WW_FLOAT64, root, WW_WAIT));
  CHECK(out[2] == value(root, rank * count + 2));
}

static void collectives_with_counts(void) {
  double mine[all], out[all];
  const int root = 0;
  size_t counts[ranks_at_most], first[ranks_at_most + 1] = {0}, given[ranks_at_most], taken[ranks_at_most];
  fill(mine, rank, all);
  for (int i = 0; i < size; ++i) {
    counts[i] = (size_t)(i % 3 + 1);
    first[i + 1] = first[i] + counts[i];
    given[i] = counts[i]; /* as many to rank i as all others give it */
  }
  for (int i = 0; i < size; ++i) taken[i] = counts[rank];
  DO(ww_all_gather_v(group, mine, out, counts, WW_FLOAT64, WW_WAIT));
  for (int from = 0; from < size; ++from) CHECK(out[first[from]] == value(from, 0));
  DO(ww_all_to_all_v(group, mine, given, out, taken, WW_FLOAT64, WW_WAIT));
  for (int from = 0; from < size; ++from) CHECK(out[(size_t)from * counts[rank]] == value(from, (int)first[rank]));
  DO(ww_gather_v(group, mine, rank == root ? out : NULL, counts, WW_FLOAT64, root, WW_WAIT));
  for (int from = 0; from < size; ++from) CHECK(rank != root || out[first[from]] == value(from, 0));
  DO(ww_scatter_v(group, rank == root ? mine : NULL, counts, out, WW_FLOAT64, root, WW_WAIT));
  CHECK(out[0] == value(root, (int)first[rank]));
}

static void windows(void) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  uint64_t memory[4] = {0, 0, 0, 0}, sent = 1000 + (uint64_t)rank, seen = 0;
  ww_window* window = NULL;
  size_t bytes = 0;
  DO(ww_expose(group, memory, sizeof memory, &window));
  DO(ww_window_bytes(window, next, &bytes));
  CHECK(bytes == sizeof memory);
  DO(ww_put(window, &sent, sizeof sent, next, 8));
  DO(ww_signal(window, next, 0, 1));
  DO(ww_wait_signal(window, 0, 1));
  CHECK(memory[1] == 1000 + (uint64_t)before);
  DO(ww_flush(group));
  DO(ww_barrier(group, WW_WAIT));
  DO(ww_get(window, &seen, sizeof seen, next, 8));
  CHECK(seen == 1000 + (uint64_t)rank);
  REFUSED(ww_put(window, &sent, sizeof sent, next, 32), WW_INVALID_INPUT, "");
  REFUSED(ww_signal(window, next, 3, 1), WW_INVALID_INPUT, "aligned");
  DO(ww_barrier(group, WW_WAIT));
  ww_window_free(window);
  ww_window_free(NULL);
}

static void gpus(void) {
  double mine[count], out[count] = {0};
  void *input = NULL, *output = NULL;
  ww_stream* stream = NULL;
  const int next = (rank + 1) % size;
  fill(mine, rank, count);
  DO(ww_gpu_allocate(group, rank, sizeof mine, &input));
  DO(ww_gpu_allocate(group, rank, sizeof mine, &output));
  DO(ww_gpu_copy(group, input, mine, sizeof mine));
  DO(ww_gpu_prepare(group, rank, 1024));
  DO(ww_stream_create(group, rank, &stream));
  DO(ww_all_reduce(group, input, output, count, WW_FLOAT64, WW_SUM, ww_on(stream)));
  DO(ww_stream_synchronize(group, stream));
  DO(ww_gpu_copy(group, out, output, sizeof out));
  CHECK(out[3] == sum_of_ranks(3));
  DO(ww_reduce(group, input, rank == 0 ? output : NULL, count, WW_FLOAT64, WW_PROD, 0, ww_on(stream)));
  DO(ww_broadcast(group, output, count, WW_FLOAT64, 0, ww_on(stream)));
  DO(ww_barrier(group, ww_on(stream)));
  DO(ww_stream_synchronize(group, stream));
  DO(ww_gpu_copy(group, out, output, sizeof out));
  CHECK(size != 2 || out[2] == value(0, 2) * value(1, 2));
  DO(ww_all_reduce(group, input, output, count, WW_FLOAT64, WW_MAX, WW_WAIT));
  DO(ww_gpu_copy(group, out, output, sizeof out));
  CHECK(out[2] == value(size - 1, 2));

  ww_window* window = NULL;
  DO(ww_barrier(group, WW_WAIT));
  DO(ww_expose(group, output, sizeof mine, &window));
  DO(ww_put(window, input, sizeof mine, next, 0));
  DO(ww_flush(group));
  DO(ww_barrier(group, WW_WAIT));
  DO(ww_gpu_copy(group, out, output, sizeof out));
  CHECK(out[1] == value((rank + size - 1) % size, 1));
  ww_window_free(window);

  DO(ww_expose_symmetric(group, output, sizeof mine, &window));
  ww_window_free(window);

  /* A part of an array: from its third element on. */
  DO(ww_expose(group, (double*)output + 2, 2 * sizeof *mine, &window));
  DO(ww_put(window, input, sizeof *mine, next, sizeof *mine));
  DO(ww_barrier(group, WW_WAIT));
  DO(ww_gpu_copy(group, out, output, sizeof out));
  CHECK(out[3] == value((rank + size - 1) % size, 0));
  REFUSED(ww_put(window, input, sizeof *mine, next, 2 * sizeof *mine), WW_INVALID_INPUT, "");
  DO(ww_barrier(group, WW_WAIT));
  ww_window_free(window);

  ww_stream* borrowed = NULL;
  REFUSED(ww_stream_borrow(group, rank, NULL, &borrowed), WW_UNAVAILABLE, ""); /* virtual GPUs have no CUDA streams */
  REFUSED(ww_gpu_allocate(group, 99, 8, &input), WW_UNAVAILABLE, "no GPU 99");
  ww_future* future = NULL;
  ww_mode both = ww_on(stream);
  both.future = &future;
  REFUSED(ww_barrier(group, both), WW_INVALID_INPUT, "a future or a stream");
  ww_stream_free(stream);
  ww_stream_free(NULL);
  DO(ww_gpu_free(group, output));
  REFUSED(ww_gpu_free(group, output), WW_INVALID_INPUT, "freed");
  DO(ww_gpu_free(group, NULL));
}

static void groups(void) {
  ww_group* part = NULL;
  double one = 1, sum = 0;
  DO(ww_split(group, rank % 2, 0, &part));
  CHECK(ww_size(part) == (size + 1 - rank % 2) / 2 && ww_rank(part) == rank / 2);
  DO(ww_all_reduce(part, &one, &sum, 1, WW_FLOAT64, WW_SUM, WW_WAIT));
  CHECK(sum == ww_size(part));
  ww_group_free(part);
  DO(ww_split(group, -1, 0, &part));
  CHECK(part == NULL);
  ww_group_free(part);
  DO(ww_split_apart(group, rank == 0 ? -1 : 0, 0, &part));
  CHECK((part == NULL) == (rank == 0));
  if (part != NULL) {
    CHECK(ww_size(part) == size - 1 && ww_rank(part) == rank - 1);
    DO(ww_abort(part, "as a test"));
    CHECK(ww_failure(part) == WW_IO);
  }
  ww_group_free(part);
  DO(ww_split_by_machine(group, -rank, &part));
  CHECK(ww_size(part) == size && ww_rank(part) == size - 1 - rank);
  ww_group_free(part);
  CHECK(ww_local_rank(group) == rank && ww_local_size(group) == size && ww_local_rank(NULL) == -1);
  DO(ww_failure(group));
  CHECK(ww_timeout(group) == 50);
  DO(ww_set_timeout(group, 40));
  CHECK(ww_timeout(group) == 40);
}

static void refusals(void) {
  double x = 0;
  ww_group* none = NULL;
  ww_join_options options = {0};
  REFUSED(ww_join(&options, &none), WW_INVALID_INPUT, "set `size`");
  options.size = sizeof options;
  options.max_ctas = -1;
  REFUSED(ww_join(&options, &none), WW_INVALID_INPUT, "max_ctas is -1");
  options.max_ctas = 0;
  options.on_failure = (ww_on_failure)9;
  REFUSED(ww_join(&options, &none), WW_INVALID_INPUT, "no on_failure 9");
  REFUSED(ww_join(NULL, NULL), WW_INVALID_INPUT, "is NULL");
  REFUSED(ww_barrier(NULL, WW_WAIT), WW_INVALID_INPUT, "the group is NULL");
  REFUSED(ww_send(group, NULL, 3, WW_FLOAT64, rank, 0, WW_WAIT), WW_INVALID_INPUT, "3 elements is NULL");
  REFUSED(ww_send(group, &x, 1, (ww_type)99, rank, 0, WW_WAIT), WW_INVALID_INPUT, "no type 99");
  REFUSED(ww_send(group, &x, (size_t)-1, WW_FLOAT64, rank, 0, WW_WAIT), WW_INVALID_INPUT, "more than there can be");
  REFUSED(ww_send(group, &x, 1, WW_FLOAT64, size, 0, WW_WAIT), WW_INVALID_INPUT, "");
  REFUSED(ww_send(group, &x, 1, WW_FLOAT64, rank, -1, WW_WAIT), WW_INVALID_INPUT, "tag -1");
  REFUSED(ww_all_reduce(group, &x, &x, 1, WW_FLOAT64, (ww_op)17, WW_WAIT), WW_INVALID_INPUT, "no operation 17");
  REFUSED(ww_all_gather_v(group, &x, &x, NULL, WW_FLOAT64, WW_WAIT), WW_INVALID_INPUT, "counts is NULL");
  REFUSED(ww_neighbor_exchange(group, NULL, 1, WW_WAIT), WW_INVALID_INPUT, "neighbours is NULL");
  REFUSED(ww_future_wait(NULL), WW_INVALID_INPUT, "the future is NULL");
  REFUSED(ww_set_timeout(group, -1), WW_INVALID_INPUT, "");
}

static void plans(void) {
  static const char text[] =
      "{\"schema\": \"waywiser.plan\", \"version\": 3, \"fingerprint\": \"f\", \"machine\": \"m\", \"backend\": "
      "\"cuda\", \"simulated\": true, \"other_nodes\": [], \"rows\": [{\"operation\": \"all_reduce\", \"memory\": "
      "\"gpu\", "
      "\"ranks\": 2, \"from_bytes\": 0, \"to_bytes\": 100, \"ways\": [{\"way\": \"LL\", \"ratio\": 1}], \"expected\": "
      "[], "
      "\"why\": \"the only way at 8\"}]}";
  char name[64];
  ww_plan* plan = NULL;
  ww_plan_key key = {0};
  ww_plan_choice choice;
  ww_plan_facts facts;
  snprintf(name, sizeof name, "plan-%d.json", rank);
  FILE* file = fopen(name, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
  DO(ww_plan_open(name, &plan));
  remove(name);
  key.operation = "all_reduce";
  key.memory = "gpu";
  key.ranks = 2;
  DO(ww_plan_choose(plan, &key, 100, &choice));
  CHECK(strcmp(choice.way, "LL") == 0 && choice.seconds == 0);
  REFUSED(ww_plan_choose(plan, &key, 101, &choice), WW_UNAVAILABLE, "no row for all_reduce of 2 ranks");
  DO(ww_plan_describe(plan, NULL, &facts));
  CHECK(strcmp(facts.fingerprint, "f") == 0 && strlen(facts.hash) == 16 && facts.simulated == 1);
  ww_plan_free(plan);
  DO(ww_machine_fingerprint(facts.fingerprint, sizeof facts.fingerprint));
}

static void files(void) {
  ww_file* file = NULL;
  char name[64];
  double values[3] = {1, 2, 3}, found[2] = {0, 0};
  uint64_t bytes = 0;
  snprintf(name, sizeof name, "file-%d.bin", rank);
  DO(ww_file_replace(name, NULL, &file));
  const ww_file_part halves[] = {{0, values, sizeof(double)}, {sizeof(double), &values[1], 2 * sizeof(double)}};
  DO(ww_file_write(file, 0, found, sizeof found));
  DO(ww_file_write_many(file, halves, 2));
  DO(ww_file_close(file));
  ww_file_free(file);
  DO(ww_file_open(name, "buffered", &file));
  DO(ww_file_size(file, &bytes));
  DO(ww_file_read(file, sizeof(double), found, sizeof found));
  CHECK(bytes == sizeof values && found[0] == 2 && found[1] == 3);
  const ww_file_part parts[] = {{0, &found[1], sizeof(double)}, {2 * sizeof(double), &found[0], sizeof(double)}};
  DO(ww_file_use_gpus(file, group)); /* memory of hosts, as before, is served as well */
  DO(ww_file_read_many(file, parts, 2));
  CHECK(found[0] == 3 && found[1] == 1);
  REFUSED(ww_file_read(file, 2 * sizeof(double), found, sizeof found), WW_IO, "the file ends at 24");
  ww_file_free(file);
  remove(name);
}

/* A group of this process alone, by an id. */
static void without_a_launcher(void) {
  ww_unique_id id = {{0}};
  ww_group* other = NULL;
  REFUSED(ww_join_by_id(NULL, &id, 0, 1, &other), WW_INVALID_INPUT, "no unique id");
  DO(ww_make_unique_id(NULL, &id));
  REFUSED(ww_join_by_id(NULL, &id, 1, 1, &other), WW_INVALID_INPUT, "rank 1 of 1");
  DO(ww_join_by_id(NULL, &id, 0, 1, &other));
  CHECK(ww_rank(other) == 0 && ww_size(other) == 1);
  DO(ww_close(other));
  ww_group_free(other);
}

/* Rank 1 gives up; the others hear why. */
static int one_gives_up(void) {
  if (ww_join(NULL, &group) != WW_OK) return 1;
  rank = ww_rank(group);
  if (rank == 1)
    DO(ww_abort(group, "out of fuel"));
  else
    REFUSED(ww_barrier(group, WW_WAIT), WW_IO, "rank 1: out of fuel");
  REFUSED(ww_failure(group), WW_IO, "rank 1: out of fuel");
  ww_group_free(group);
  return problems != 0;
}

int main(int arguments, char** argument) {
  if (arguments == 2 && strcmp(argument[1], "one gives up") == 0) return one_gives_up();
  names();
  ww_join_options options = {0};
  options.size = sizeof options;
  options.timeout = 50;
  options.virtual_gpus = ranks_at_most;
  if (ww_join(&options, &group) != WW_OK) {
    fprintf(stderr, "%s\n", ww_error_text());
    return 1;
  }
  rank = ww_rank(group);
  size = ww_size(group);
  messages();
  other_types();
  operations_of_integers();
  scans();
  collectives();
  collectives_with_counts();
  windows();
  groups();
  without_a_launcher();
  plans();
  files();
  refusals();
  gpus();
  if (problems == 0) {
    printf("rank %d of %d: all calls\n", rank, size);
    DO(ww_close(group));
  } else {
    DO(ww_abort(group, "it has found problems"));
  }
  ww_group_free(group);
  return problems != 0;
}
