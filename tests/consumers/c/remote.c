/* Uses a GPU of a server: `remote HOST:PORT KEYFILE`. */
#include <stdio.h>
#include <string.h>
#include <waywiser/c/waywiser.h>

enum { count = 1000 };

static int problems;

static void report(int right, const char* what, int line) {
  if (right) return;
  ++problems;
  fprintf(stderr, "line %d: %s (%s)\n", line, what, ww_error_text());
}
#define CHECK(what) report((what) != 0, #what, __LINE__)
#define DO(call) report((call) == WW_OK, #call, __LINE__)

int main(int argc, char** argv) {
  ww_remote* gpu = NULL;
  if (argc != 3) return 2;
  CHECK(ww_remote_open("nowhere", argv[2], 0, 60, &gpu) == WW_INVALID_INPUT);
  if (ww_remote_open(argv[1], argv[2], 0, 60, &gpu) != WW_OK) {
    fprintf(stderr, "%s\n", ww_error_text());
    return 1;
  }
  double a[count], b[count], got[count];
  for (int i = 0; i < count; ++i) {
    a[i] = i;
    b[i] = 0.5 * i;
  }
  uint64_t both[2], result = 0, lost = 0, zeros = 0;
  const ww_remote_number times = {"times", 3};
  DO(ww_remote_array(gpu, a, count, WW_FLOAT64, &both[0]));
  DO(ww_remote_array(gpu, b, count, WW_FLOAT64, &both[1]));
  DO(ww_remote_run(gpu, "repeat_add", both, 2, &times, 1, &result));
  DO(ww_remote_flush(gpu));
  DO(ww_remote_get(gpu, result, got, count, WW_FLOAT64));
  for (int i = 0; i < count; ++i) CHECK(got[i] == 2.5 * i);

  DO(ww_remote_zeros(gpu, count, WW_FLOAT64, &zeros));
  DO(ww_remote_put(gpu, zeros, 8, &a[7], 8));
  DO(ww_remote_get(gpu, zeros, got, count, WW_FLOAT64));
  CHECK(got[0] == 0 && got[1] == 7 && got[2] == 0);
  CHECK(ww_remote_get(gpu, zeros, got, 3, WW_FLOAT64) == WW_INVALID_INPUT);

  DO(ww_remote_run(gpu, "nothing", both, 1, NULL, 0, &lost));
  CHECK(ww_remote_synchronize(gpu) == WW_INVALID_INPUT && strstr(ww_error_text(), "no function 'nothing'") != NULL);
  DO(ww_remote_release(gpu, result));
  CHECK(ww_remote_get(gpu, result, got, count, WW_FLOAT64) == WW_INVALID_INPUT);
  DO(ww_remote_synchronize(gpu));

  /* Streams and events. */
  uint64_t streams[2], events[2], sums[2], number = 0;
  double seconds = -1;
  for (int i = 0; i < 2; ++i) {
    DO(ww_remote_stream(gpu, &streams[i]));
    DO(ww_remote_event(gpu, &events[i]));
    DO(ww_remote_use_stream(gpu, streams[i]));
    DO(i == 0 ? WW_OK : ww_remote_wait(gpu, events[0]));
    DO(ww_remote_run(gpu, "add", i == 0 ? both : sums, i == 0 ? 2 : 1, NULL, 0, &sums[i]));
    if (i == 0) sums[1] = sums[0];
    DO(ww_remote_record(gpu, events[i]));
    if (i == 0) DO(ww_remote_await(gpu, events[0]));
  }
  CHECK(ww_remote_synchronize(gpu) == WW_INVALID_INPUT && strstr(ww_error_text(), "add: it takes 2 arrays") != NULL);
  DO(ww_remote_record(gpu, events[1]));
  DO(ww_remote_since(gpu, events[1], events[0], &seconds));
  CHECK(seconds >= 0);
  DO(ww_remote_get(gpu, sums[0], got, count, WW_FLOAT64));
  for (int i = 0; i < count; ++i) CHECK(got[i] == 1.5 * i);
  CHECK(ww_remote_since(gpu, events[0], 12345, &seconds) == WW_INVALID_INPUT);
  DO(ww_remote_release(gpu, streams[1]));
  DO(ww_remote_release(gpu, events[1]));
  CHECK(ww_remote_await(gpu, events[1]) == WW_INVALID_INPUT);
  DO(ww_remote_use_stream(gpu, 0));

  /* Memory that the server maps. */
  double* mine = NULL;
  DO(ww_remote_pinned(gpu, count * sizeof(double), (void**)&mine));
  CHECK(strcmp(ww_remote_pinned_by(gpu, mine), "server") == 0 && strcmp(ww_remote_pinned_by(gpu, got), "") == 0);
  for (int i = 0; i < count; ++i) mine[i] = 3 * i;
  DO(ww_remote_array(gpu, mine, count, WW_FLOAT64, &number));
  for (int i = 0; i < count; ++i) mine[i] = 0;
  DO(ww_remote_get(gpu, number, mine, count, WW_FLOAT64));
  for (int i = 0; i < count; ++i) CHECK(mine[i] == 3 * i);
  DO(ww_remote_unpin(gpu, mine));
  CHECK(ww_remote_unpin(gpu, got) == WW_INVALID_INPUT && strcmp(ww_remote_pinned_by(NULL, got), "") == 0);

  /* A kernel: this server has virtual GPUs. */
  const ww_remote_shape shape = {{1, 1, 1}, {32, 1, 1}, 0};
  const ww_remote_argument argument = {WW_ARGUMENT_ARRAY, &both[0]};
  CHECK(ww_remote_load_kernels(gpu, "extern", 6, &number) == WW_UNAVAILABLE);
  DO(ww_remote_launch(gpu, number, "nothing", &shape, &argument, 1));
  CHECK(ww_remote_synchronize(gpu) == WW_UNAVAILABLE);
  const ww_remote_argument no_value = {WW_ARGUMENT_INT32, NULL}, no_kind = {(ww_argument_kind)7, &number};
  CHECK(ww_remote_launch(gpu, number, "nothing", &shape, &no_value, 1) == WW_INVALID_INPUT);
  CHECK(ww_remote_launch(gpu, number, "nothing", &shape, &no_kind, 1) == WW_INVALID_INPUT);

  /* Another GPU of the server; on one machine nothing is encrypted. */
  ww_remote* other = NULL;
  DO(ww_remote_open(argv[1], argv[2], 1, 60, &other));
  DO(ww_remote_use_plain_data(other));
  DO(ww_remote_copy_of(other, gpu, both[0], &number));
  DO(ww_remote_get(other, number, got, count, WW_FLOAT64));
  for (int i = 0; i < count; ++i) CHECK(got[i] == i);
  CHECK(ww_remote_copy_of(gpu, gpu, both[0], &number) == WW_INVALID_INPUT);
  ww_remote_free(other);
  CHECK(ww_remote_synchronize(NULL) == WW_INVALID_INPUT);
  ww_remote_free(gpu);
  ww_remote_free(NULL);
  if (problems == 0) printf("all calls\n");
  return problems != 0;
}
