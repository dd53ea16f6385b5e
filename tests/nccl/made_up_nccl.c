/* What NCCL does with a tuner, without a GPU: made_up_nccl PLUGIN VERSION RANKS NODES, then lines on standard input
 * COLLECTIVE BYTES ALGORITHMS PROTOCOLS [A:P ...]: those entries cannot run. Each is answered by the entries that are
 * written, the channels and, from version 6 on, the chunk size for the first of them. The interfaces are declared here
 * once more, so that a wrong declaration of the plug-in does not agree with itself. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*log_function)(int level, unsigned long flags, const char* file, int line, const char* format, ...);
typedef int (*get_info)(void*, int, size_t, int, float**, int, int, int, int*);
typedef int (*get_chunk)(void*, int, size_t, int, int, int, size_t*);

struct v4 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, log_function log, void** context);
  get_info info;
  int (*destroy)(void*);
};

struct domains {
  int count, least, most;
};

/* As large as version 7's: 7 algorithms, 3 protocols, 3 kinds of links, 5 kinds of GPUs, 3 scales. */
struct constants {
  double base[7][3], links[3][7][3], rates[5][5][3];
};

struct v6 {
  const char* name;
  int (*init)(void** context, uint64_t id, size_t ranks, size_t nodes, log_function log, struct domains* domains,
              struct constants* constants);
  get_info info;
  int (*finalize)(void*);
  get_chunk chunk; /* not in version 5 */
};

enum { most_algorithms = 7, most_protocols = 3 };

int ncclGetVersion(int* version) {
  const char* told = getenv("MADE_UP_NCCL_VERSION");
  *version = told == NULL ? 22705 : atoi(told);
  return *version == 0;
}

static void log_line(int level, unsigned long flags, const char* file, int line, const char* format, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static const char* const names[] = {"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce", "send_recv"};

static int number_of(const char* name) {
  for (int i = 0; i < 6; ++i)
    if (strcmp(names[i], name) == 0) return i;
  return 99;
}

static void ask(get_info info, get_chunk chunk, void* context, char* line) {
  float costs[most_algorithms * most_protocols];
  const char* name = strtok(line, " \n");
  const size_t bytes = strtoull(strtok(NULL, " \n"), NULL, 10);
  const int algorithms = atoi(strtok(NULL, " \n")), protocols = atoi(strtok(NULL, " \n"));
  int channels = 0, first = -1;
  float before[most_algorithms * most_protocols];
  for (int i = 0; i < algorithms * protocols; ++i) before[i] = 5;
  for (const char* entry; (entry = strtok(NULL, " \n")) != NULL;)
    before[atoi(entry) * protocols + atoi(strchr(entry, ':') + 1)] = -1;
  memcpy(costs, before, sizeof costs);
  const int result = info(context, number_of(name), bytes, 1, (float**)costs, algorithms, protocols, 0, &channels);
  printf("%d", result);
  for (int i = 0; i < algorithms * protocols; ++i)
    if (costs[i] != before[i]) {
      printf(" %d:%d=%g", i / protocols, i % protocols, costs[i]);
      if (first < 0) first = i;
    }
  printf(" channels=%d", channels);
  size_t size = 1000;
  if (chunk != NULL && first >= 0) {
    const int told = chunk(context, number_of(name), bytes, first / protocols, first % protocols, channels, &size);
    printf(" chunk=%d:%zu", told, size);
  }
  printf("\n");
}

int main(int count, char** arguments) {
  if (count != 5) return 2;
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 3;
  char symbol[64];
  const int version = atoi(arguments[2]);
  snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", version);
  const void* found = dlsym(library, symbol);
  if (found == NULL) return fprintf(stderr, "no %s\n", symbol), 3;
  const size_t ranks = strtoull(arguments[3], NULL, 10), nodes = strtoull(arguments[4], NULL, 10);
  void* context = NULL;
  struct domains domains = {1, (int)ranks, (int)ranks};
  struct constants constants, before;
  memset(&constants, 7, sizeof constants);
  before = constants;
  const struct v4* old = found;
  const struct v6* new = found;
  const int result = version == 4 ? old->init(ranks, nodes, log_line, &context)
                                  : new->init(&context, 42, ranks, nodes, log_line, &domains, &constants);
  printf("%s init %d\n", version == 4 ? old->name : new->name, result);
  if (memcmp(&constants, &before, sizeof constants) != 0) return fprintf(stderr, "the constants have changed\n"), 4;
  if (result != 0) return 0;
  char line[1024];
  while (fgets(line, sizeof line, stdin) != NULL)
    ask(version == 4 ? old->info : new->info, version >= 6 ? new->chunk : NULL, context, line);
  return version == 4 ? old->destroy(context) : new->finalize(context);
}
