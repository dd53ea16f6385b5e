/* A 2-D grid, cut over any number of ranks, and a ring of cells as a mesh: checks each ghost after each exchange. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waywiser/c/waywiser.h>

enum { height = 12, width = 10, ghost = 2 };

static ww_group* group;
static int rank, size;

static void stop(const char* what, int line) {
  fprintf(stderr, "rank %d, line %d: %s (%s)\n", rank, line, what, ww_error_text());
  if (group != NULL) ww_abort(group, what);
  exit(1);
}
#define CHECK(what) ((what) ? (void)0 : stop(#what, __LINE__))
#define DO(call) CHECK((call) == WW_OK)

/* A scalar field and a vector field of two components, with ghosts. */
typedef struct fields {
  int64_t first[2], count[2];
  double* pressure;
  float* velocity;
} fields;

static size_t at(const fields* f, int64_t row, int64_t column) {
  return (size_t)((row + ghost) * (f->count[1] + 2 * ghost) + column + ghost);
}

static double value(int64_t row, int64_t column) { return (double)(100 * row + column); }

/* Rows are periodic, columns are not. */
static void each_cell(const fields* f, int64_t beyond, int fill) {
  for (int64_t row = -beyond; row < f->count[0] + beyond; ++row) {
    for (int64_t column = -beyond; column < f->count[1] + beyond; ++column) {
      const size_t cell = at(f, row, column);
      const int64_t whole_column = f->first[1] + column, whole_row = (f->first[0] + row + height) % height;
      const int inside = whole_column >= 0 && whole_column < width;
      const double expected = inside ? value(whole_row, whole_column) : -1;
      if (fill) {
        f->pressure[cell] = expected;
        f->velocity[2 * cell + 1] = (float)expected;
      } else {
        CHECK(f->pressure[cell] == expected && f->velocity[2 * cell + 1] == (float)expected);
      }
    }
  }
}

static void prepare(fields* f, size_t cells) {
  for (size_t cell = 0; cell < cells; ++cell)
    f->pressure[cell] = f->velocity[2 * cell] = f->velocity[2 * cell + 1] = -1;
  each_cell(f, 0, 1);
}

static void exchange_and_check(ww_halo* halo, fields* f, size_t cells) {
  prepare(f, cells);
  DO(ww_halo_start(halo, NULL));
  DO(ww_halo_finish(halo));
  each_cell(f, ghost, 0);
}

/* Sides in the direction of columns by one variant, the others by another. */
static void by_sides(ww_halo* halo, fields* f, size_t cells) {
  ww_halo_variant variants[8 * 4];
  size_t count = 0;
  int mixed = 0, variant = -1;
  DO(ww_halo_side_count(halo, &count));
  CHECK(count <= sizeof variants / sizeof *variants);
  for (size_t i = 0; i < count; ++i) {
    ww_halo_side side;
    DO(ww_halo_side_at(halo, i, &side));
    CHECK(side.rank >= 0 && side.rank < size && side.face[2] == 0 && side.face[3] == 0);
    variants[i] = side.face[1] == 0 ? WW_HALO_PER_NEIGHBOR : WW_HALO_PACKED;
    mixed |= 1 << variants[i];
  }
  DO(ww_halo_use_sides(halo, variants, count));
  exchange_and_check(halo, f, cells);
  DO(ww_halo_variant_in_use(halo, &variant));
  CHECK(mixed != (1 << WW_HALO_PER_NEIGHBOR | 1 << WW_HALO_PACKED) || variant == WW_HALO_MIXED);
}

/* The second time the answer comes from the file. */
static void kept_answers(ww_halo* halo, fields* f, size_t cells) {
  char file[64];
  snprintf(file, sizeof file, "answers-%d.json", rank);
  remove(file);
  DO(ww_halo_tune_file(halo, 1e-3, file));
  CHECK(strstr(ww_halo_explain(halo), "the least median of") != NULL);
  DO(ww_halo_tune_file(halo, 1e-3, file));
  CHECK(strstr(ww_halo_explain(halo), "an earlier run's answer in answers-") != NULL);
  exchange_and_check(halo, f, cells);
  remove(file);
}

static void grid(void) {
  const int64_t shape[] = {height, width}, widths[] = {ghost, ghost};
  const int periodic[] = {1, 0};
  fields f;
  ww_halo* halo = NULL;
  size_t cells = 0;
  DO(ww_grid_box(2, shape, size, rank, f.first, f.count));
  DO(ww_halo_grid(group, 2, shape, widths, periodic, f.first, f.count, &halo));
  DO(ww_halo_cells(halo, &cells));
  CHECK(cells == (size_t)((f.count[0] + 2 * ghost) * (f.count[1] + 2 * ghost)));
  f.pressure = malloc(cells * sizeof *f.pressure);
  f.velocity = malloc(2 * cells * sizeof *f.velocity);
  CHECK(f.pressure != NULL && f.velocity != NULL);
  const ww_halo_field both[] = {{f.pressure, WW_FLOAT64, 1, 0}, {f.velocity, WW_FLOAT32, 2, 0}};
  DO(ww_halo_set_fields(halo, both, 2));
  for (int variant = WW_HALO_WHOLE_FIELD; variant <= WW_HALO_PACKED; ++variant) {
    ww_halo_totals totals;
    DO(ww_halo_use(halo, (ww_halo_variant)variant));
    for (int start = 0; start < 3; ++start) exchange_and_check(halo, &f, cells);
    DO(ww_halo_counts(halo, (ww_halo_variant)variant, &totals));
    CHECK(totals.exchanges == 3 && (size == 1 || totals.messages > 0));
  }
  by_sides(halo, &f, cells);
  prepare(&f, cells);
  DO(ww_halo_tune(halo, 1e-3));
  each_cell(&f, ghost, 0);
  int variant = -1;
  DO(ww_halo_variant_in_use(halo, &variant));
  CHECK(variant >= WW_HALO_WHOLE_FIELD && variant <= WW_HALO_MIXED);
  CHECK(strstr(ww_halo_explain(halo), "the least median of") != NULL);
  exchange_and_check(halo, &f, cells);
  ww_halo_seconds seconds;
  DO(ww_halo_times(halo, &seconds));
  CHECK(seconds.inside > 0 && seconds.overlapped >= 0 && seconds.inside + seconds.overlapped <= seconds.elapsed * 1.0001);
  kept_answers(halo, &f, cells);
  ww_halo_free(halo);
  free(f.pressure);
  free(f.velocity);

  const int64_t other[] = {ghost, rank == size - 1 ? 1 : ghost}; /* all ranks hear of one rank's mistake */
  CHECK(size == 1 || ww_halo_grid(group, 2, shape, other, periodic, f.first, f.count, &halo) == WW_INVALID_INPUT);
  CHECK(size == 1 || strstr(ww_error_text(), "than rank 0") != NULL);
}

/* One cell of each rank, and a ghost of the rank before it. */
static void ring(void) {
  const int64_t own = 0, ghost_cell = 1;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const ww_halo_neighbor neighbors[] = {{next, &own, 1, NULL, 0}, {before, NULL, 0, &ghost_cell, 1}};
  int32_t values[] = {rank, -1};
  const ww_halo_field field = {values, WW_INT32, 1, 0};
  ww_halo* halo = NULL;
  DO(ww_halo_mesh(group, 2, neighbors, 2, &halo));
  DO(ww_halo_set_fields(halo, &field, 1));
  DO(ww_halo_exchange(halo, NULL));
  CHECK(values[0] == rank && values[1] == before);
  ww_halo_free(halo);
  ww_halo_free(NULL);
}

int main(void) {
  if (ww_join(NULL, &group) != WW_OK) stop("ww_join", __LINE__);
  rank = ww_rank(group);
  size = ww_size(group);
  grid();
  ring();
  printf("rank %d of %d: ghosts are right\n", rank, size);
  DO(ww_close(group));
  ww_group_free(group);
  return 0;
}
