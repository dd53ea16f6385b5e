// Ranks of MPI, of all and of a part of them, add up their numbers in a group.
#include <stdio.h>

#include "waywiser/c/waywiser_mpi.h"

static int sums(MPI_Comm comm) {
  ww_group* group = NULL;
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  double mine = rank + 1, sum = 0;
  if (ww_join_mpi(comm, NULL, &group) != WW_OK) return 0;
  const int right = ww_rank(group) == rank && ww_size(group) == size &&
                    ww_all_reduce(group, &mine, &sum, 1, WW_FLOAT64, WW_SUM, WW_WAIT) == WW_OK &&
                    sum == size * (size + 1) / 2 && ww_close(group) == WW_OK;
  ww_group_free(group);
  return right;
}

int main(int arguments, char** argument) {
  int rank = 0;
  MPI_Comm part;
  MPI_Init(&arguments, &argument);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
  if (!sums(MPI_COMM_WORLD) || !sums(part)) {
    fprintf(stderr, "rank %d: %s\n", rank, ww_error_text());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  printf("rank %d: two groups\n", rank);
  MPI_Comm_free(&part);
  MPI_Finalize();
  return 0;
}
