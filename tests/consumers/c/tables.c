/* Rows of a table to the ranks that own their keys, with any number of ranks of one machine: every call of a shuffle.
 */
#include <stdio.h>
#include <string.h>
#include <waywiser/c/waywiser.h>
#include <waywiser/table/arrow_interface.h> /* or any header of Arrow */

enum { rows = 1000, parts = 8 };

static ww_group* group;
static int problems;

static void report(int right, const char* what, int line) {
  if (right) return;
  ++problems;
  fprintf(stderr, "rank %d, line %d: %s (%s)\n", ww_rank(group), line, what, ww_error_text());
}
#define CHECK(what) report((what) != 0, #what, __LINE__)
#define DO(call) report((call) == WW_OK, #call, __LINE__)
#define REFUSED(call, words) report((call) == WW_INVALID_INPUT && strstr(ww_error_text(), words), #call, __LINE__)

/* What the program owns needs no release of its own. */
static void keep_schema(struct ArrowSchema* schema) { schema->release = NULL; }
static void keep_array(struct ArrowArray* array) { array->release = NULL; }

static struct ArrowSchema column_of(const char* format, const char* name) {
  struct ArrowSchema column = {0};
  column.format = format;
  column.name = name;
  column.release = keep_schema;
  return column;
}

static struct ArrowArray values_of(const void** buffers, int count) {
  struct ArrowArray values = {0};
  values.length = rows;
  values.n_buffers = count;
  values.buffers = buffers;
  values.release = keep_array;
  return values;
}

/* The sum of the keys of a part; each is where its hash says, so no key is at two ranks. */
static int64_t sum_of(ww_shuffle* shuffle, int part, int64_t* found) {
  int64_t sum = 0;
  struct ArrowArray batch;
  for (;;) {
    DO(ww_shuffle_extract(shuffle, part, &batch));
    if (batch.release == NULL) break;
    const int64_t* keys = (const int64_t*)batch.children[0]->buffers[1];
    for (int64_t row = 0; row < batch.length; ++row) sum += keys[row];
    *found += batch.length;
    batch.release(&batch);
  }
  REFUSED(ww_shuffle_extract(shuffle, part, &batch), "is extracted already");
  return sum;
}

static void shuffled(void) {
  const int rank = ww_rank(group), size = ww_size(group);
  int64_t keys[rows];
  double amounts[rows];
  for (int row = 0; row < rows; ++row) keys[row] = (int64_t)rank * rows + row, amounts[row] = row;

  struct ArrowSchema columns[] = {column_of("l", "key"), column_of("g", "amount")};
  struct ArrowSchema *listed[] = {&columns[0], &columns[1]}, schema = column_of("+s", "");
  schema.n_children = 2;
  schema.children = listed;
  const void *of_keys[] = {NULL, keys}, *of_amounts[] = {NULL, amounts}, *none[] = {NULL};
  struct ArrowArray values[] = {values_of(of_keys, 2), values_of(of_amounts, 2)};
  struct ArrowArray *children[] = {&values[0], &values[1]}, batch = values_of(none, 1);
  batch.n_children = 2;
  batch.children = children;

  ww_shuffle* shuffle = NULL;
  REFUSED(ww_shuffle_begin(group, rank == size - 1 ? NULL : &schema, parts, 0, 0, 0, NULL, &shuffle),
          "the schema is NULL");
  REFUSED(ww_shuffle_begin(group, &schema, parts, 1 << 14, 1 << 12, 1 << 12, NULL, &shuffle), "come together");
  DO(ww_shuffle_begin(group, &schema, parts, 1 << 14, 1 << 12, 1 << 12, ".", &shuffle));
  const int by_key[] = {0}, other[] = {2};
  DO(ww_shuffle_insert_by(shuffle, &batch, by_key, 1));
  DO(ww_shuffle_insert(shuffle, &batch, 3));
  REFUSED(ww_shuffle_insert_by(shuffle, &batch, other, 1), "no column 2 of a table of 2");
  REFUSED(ww_shuffle_insert(shuffle, &batch, parts), "part 8 is not in 0 to 7");
  DO(ww_shuffle_complete(shuffle, 0));
  REFUSED(ww_shuffle_insert(shuffle, &batch, 0), "this rank has completed part 0");
  DO(ww_shuffle_finish(shuffle));
  DO(ww_shuffle_take_all(shuffle));
  int64_t told[2] = {0, 0};
  for (;;) {
    int part = 0;
    DO(ww_shuffle_next(shuffle, &part));
    if (part < 0) break;
    CHECK(part % size == rank);
    told[0] += sum_of(shuffle, part, &told[1]);
  }
  ww_shuffle_free(shuffle);
  DO(ww_all_reduce(group, told, told, 2, WW_INT64, WW_SUM, WW_WAIT));
  const int64_t all = (int64_t)size * rows;
  CHECK(told[1] == 2 * all && told[0] == all * (all - 1));
}

int main(void) {
  if (ww_join(NULL, &group) != WW_OK) {
    fprintf(stderr, "%s\n", ww_error_text());
    return 1;
  }
  const int rank = ww_rank(group), size = ww_size(group);
  shuffled();
  if (problems == 0) {
    printf("rank %d of %d: all rows\n", rank, size);
    DO(ww_close(group));
  } else {
    DO(ww_abort(group, "it has found problems"));
  }
  ww_group_free(group);
  return problems != 0;
}
