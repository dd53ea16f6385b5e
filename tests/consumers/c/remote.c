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
  CHECK(ww_remote_synchronize(NULL) == WW_INVALID_INPUT);
  ww_remote_free(gpu);
  ww_remote_free(NULL);
  if (problems == 0) printf("all calls\n");
  return problems != 0;
}
