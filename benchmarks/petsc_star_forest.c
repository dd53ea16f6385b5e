/* A broadcast over a star forest, whose leaves are all roots of the next rank, by PETSc's basic type and by the
 * plugin's, in turn: microseconds, the median of the rounds at the slowest rank, and the second divided by the first.
 * It runs as docs/howto-petsc.md says. -gpu: the arrays are in the memory of a GPU. */
#include <petscdevice.h>
#include <petscsf.h>
#include <stdlib.h>

enum { ROUNDS = 9, TYPES = 2 };
static const char* const types[TYPES] = {PETSCSFBASIC, "waywiser"};

static int order(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static PetscErrorCode forest(const char* type, PetscInt count, int next, PetscSF* sf) {
  PetscSFNode* roots;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(count, &roots));
  for (PetscInt i = 0; i < count; ++i) roots[i] = (PetscSFNode){next, i};
  PetscCall(PetscSFCreate(PETSC_COMM_WORLD, sf));
  PetscCall(PetscSFSetType(*sf, type));
  PetscCall(PetscSFSetGraph(*sf, count, count, NULL, PETSC_COPY_VALUES, roots, PETSC_OWN_POINTER));
  PetscFunctionReturn(0);
}

/* The slowest rank's time of a broadcast. */
static PetscErrorCode turns(PetscSF sf, int times, const double* root, double* leaf, double* each) {
  double begin;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  begin = MPI_Wtime();
  for (int i = 0; i < times; ++i) {
    PetscCall(PetscSFBcastBegin(sf, MPI_DOUBLE, root, leaf, MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(sf, MPI_DOUBLE, root, leaf, MPI_REPLACE));
  }
  PetscCall(PetscDeviceContextSynchronize(NULL));
  *each = (MPI_Wtime() - begin) / times * 1e6;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, each, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  PetscFunctionReturn(0);
}

int main(int argc, char** argv) {
  int rank, ranks;
  PetscBool gpu = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-gpu", &gpu, NULL));
  const PetscMemType memory = gpu ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "doubles of each of %d ranks; us basic; us waywiser; quotient\n", ranks));
  for (PetscInt count = 1; count <= 1000000; count *= 10) {
    const int times = count < 10000 ? 2000 : (int)(20000000 / count);
    double us[TYPES][ROUNDS], *root, *leaf, *seen;
    PetscSF sf[TYPES];
    PetscCall(PetscDeviceMalloc(NULL, PETSC_MEMTYPE_HOST, count, &seen));
    PetscCall(PetscDeviceMalloc(NULL, memory, count, &root));
    PetscCall(PetscDeviceMalloc(NULL, memory, count, &leaf));
    for (PetscInt i = 0; i < count; ++i) seen[i] = rank * 1e7 + (double)i;
    PetscCall(PetscDeviceArrayCopy(NULL, root, seen, count));
    for (int type = 0; type < TYPES; ++type) PetscCall(forest(types[type], count, (rank + 1) % ranks, &sf[type]));
    for (int round = -1; round < ROUNDS; ++round) /* the first one does not count */
      for (int type = 0; type < TYPES; ++type) {
        double each;
        PetscCall(PetscDeviceArrayZero(NULL, leaf, count));
        PetscCall(turns(sf[type], times, root, leaf, &each));
        PetscCall(PetscArrayzero(seen, count));
        PetscCall(PetscDeviceArrayCopy(NULL, seen, leaf, count));
        PetscCall(PetscDeviceContextSynchronize(NULL));
        for (PetscInt i = 0; i < count; ++i)
          PetscCheck(seen[i] == (rank + 1) % ranks * 1e7 + (double)i, PETSC_COMM_SELF, PETSC_ERR_PLIB, "leaf %d",
                     (int)i);
        if (round >= 0) us[type][round] = each;
      }
    for (int type = 0; type < TYPES; ++type) {
      qsort(us[type], ROUNDS, sizeof(double), order);
      PetscCall(PetscSFDestroy(&sf[type]));
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%8d %10.2f %10.2f %6.2f\n", (int)count, us[0][ROUNDS / 2],
                          us[1][ROUNDS / 2], us[1][ROUNDS / 2] / us[0][ROUNDS / 2]));
    PetscCall(PetscDeviceFree(NULL, root));
    PetscCall(PetscDeviceFree(NULL, leaf));
    PetscCall(PetscDeviceFree(NULL, seen));
  }
  PetscCall(PetscFinalize());
  return 0;
}
