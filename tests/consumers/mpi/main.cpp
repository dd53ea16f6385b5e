// Ranks of MPI, of all and of a part of them, add up their numbers in a group.
#include <array>
#include <cstdio>
#include <span>

#include "waywiser/c/waywiser_mpi.hpp"
#include "waywiser/waywiser.hpp"

static bool sums(MPI_Comm comm) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  waywiser::Group group = waywiser::join_mpi(comm);
  std::array<double, 1> x{rank + 1.};
  group.all_reduce(std::span(x), std::span(x));
  const bool right = group.rank() == rank && group.size() == size && x[0] == size * (size + 1) / 2;
  group.close();
  return right;
}

int main(int arguments, char** argument) {
  int rank = 0;
  MPI_Comm part;
  MPI_Init(&arguments, &argument);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
  if (!sums(MPI_COMM_WORLD) || !sums(part)) MPI_Abort(MPI_COMM_WORLD, 1);
  std::printf("rank %d: two groups\n", rank);
  MPI_Comm_free(&part);
  MPI_Finalize();
}
