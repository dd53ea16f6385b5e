/* Random star forests of the types "basic" and "waywiser" give the same arrays, to the last bit: broadcasts, reductions
 * and fetches, several at once, of many units and operations. -cases N, -seed S, -gpu K: the
 * arrays of ranks 0, K, 2K, ... are on their GPUs, with what PETSc's kernels for GPUs reduce. */
#include <petscdevice.h>
#include <petscsf.h>

#define ROOTS 23
#define LEAVES 31
#define UNIT_BYTES 64 /* the largest unit */

static uint64_t state;

static unsigned below(unsigned limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % limit;
}

/* The same for all ranks if `rank` is 0 everywhere. */
static void seed(unsigned number, int rank) {
  state = number * 0x9e3779b97f4a7c15u + (unsigned)rank * 977u;
  for (int i = 0; i < 8; ++i) below(2);
}

/* Small numbers: no operation of any type overflows, and sums of scalars are exact, since GPUs add in any order. */
static void fill(void* array, size_t units, MPI_Datatype element, int each) {
  for (size_t i = 0; i < units * (size_t)each; ++i) {
    const int value = (int)below(4);
    if (element == MPIU_SCALAR)
      ((PetscScalar*)array)[i] = (PetscScalar)value / 4;
    else if (element == MPIU_INT)
      ((PetscInt*)array)[i] = value;
    else if (element == MPI_UNSIGNED_CHAR)
      ((unsigned char*)array)[i] = (unsigned char)value;
    else
      ((int*)array)[2 * i] = value, ((int*)array)[2 * i + 1] = (int)i;
  }
}

/* `next`: the leaves are the roots of the next rank, in one piece, and no root has two. */
static PetscErrorCode graph(PetscSF sf, int rank, int ranks, PetscBool next) {
  PetscInt leaves[LEAVES], count = 0;
  PetscSFNode roots[LEAVES];

  PetscFunctionBegin;
  if (next) {
    const PetscInt first = (PetscInt)below(LEAVES - ROOTS);
    for (PetscInt i = 0; i < ROOTS; ++i) leaves[i] = first + i, roots[i] = (PetscSFNode){(rank + 1) % ranks, i};
    PetscCall(PetscSFSetGraph(sf, ROOTS, ROOTS, leaves, PETSC_COPY_VALUES, roots, PETSC_COPY_VALUES));
    PetscFunctionReturn(0);
  }
  const unsigned busy = below(4), near = below(2);
  for (PetscInt leaf = 0; leaf < LEAVES; ++leaf) {
    if (below(4) > busy) continue;
    leaves[count] = leaf;
    roots[count].rank = (PetscInt)below((unsigned)ranks);
    roots[count].index = near ? leaf % ROOTS : (PetscInt)below(ROOTS);
    ++count;
  }
  PetscCall(PetscSFSetGraph(sf, ROOTS, count, leaves, PETSC_COPY_VALUES, roots, PETSC_COPY_VALUES));
  PetscFunctionReturn(0);
}

enum { LEAF = ROOTS * UNIT_BYTES, SIDE = LEAVES * UNIT_BYTES, ALL_BYTES = 2 * LEAF + 3 * SIDE };

/* What a forest makes of the same arrays: two broadcasts and a reduction at once, then a fetch if `basic` has it. */
static PetscErrorCode operate(PetscSF sf, MPI_Datatype unit, MPI_Datatype element, int each, MPI_Op op,
                              unsigned char* arrays, unsigned char* root, PetscBool fetches, PetscBool next) {
  unsigned char *leaf = root + LEAF, *leaf2 = leaf + SIDE, *given = leaf2 + SIDE, *sum = given + SIDE;

  /* Which of several leaves replaces a root is chance in the basic type. */
  const MPI_Op reduction = op == MPI_REPLACE && !next ? MPI_SUM : op;

  PetscFunctionBegin;
  fill(arrays, ROOTS, element, each);
  for (int i = 0; i < 3; ++i) fill(arrays + LEAF + i * SIDE, LEAVES, element, each);
  fill(arrays + LEAF + 3 * SIDE, ROOTS, element, each);
  PetscCall(PetscDeviceArrayCopy(NULL, root, arrays, ALL_BYTES));
  PetscCall(PetscSFBcastBegin(sf, unit, root, leaf, op));
  PetscCall(PetscSFReduceBegin(sf, unit, given, sum, reduction));
  PetscCall(PetscSFBcastBegin(sf, unit, root, leaf2, MPI_REPLACE));
  PetscCall(PetscSFReduceEnd(sf, unit, given, sum, reduction));
  PetscCall(PetscSFBcastEnd(sf, unit, root, leaf2, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, unit, root, leaf, op));
  if (fetches) {
    PetscCall(PetscSFFetchAndOpBegin(sf, unit, sum, leaf, leaf2, op));
    PetscCall(PetscSFFetchAndOpEnd(sf, unit, sum, leaf, leaf2, op));
  }
  PetscCall(PetscDeviceArrayCopy(NULL, arrays, root, ALL_BYTES));
  PetscCall(PetscDeviceContextSynchronize(NULL));
  PetscFunctionReturn(0);
}

int main(int argc, char** argv) {
  unsigned char *arrays[2], *used;
  PetscInt on_gpu = 0;
  PetscInt cases = 100, first = 0;
  int rank, here, ranks;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-cases", &cases, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &first, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gpu", &on_gpu, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  const PetscBool gpu = (PetscBool)(on_gpu > 0 && rank % (int)on_gpu == 0);
  PetscCall(PetscDeviceCalloc(NULL, gpu ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, ALL_BYTES, &used));
  for (int type = 0; type < 2; ++type) PetscCall(PetscDeviceCalloc(NULL, PETSC_MEMTYPE_HOST, ALL_BYTES, &arrays[type]));
  for (PetscInt number = first; number < first + cases; ++number) {
    const MPI_Datatype elements[] = {MPIU_SCALAR, MPIU_INT, MPI_UNSIGNED_CHAR, MPI_2INT};
    const MPI_Op operations[] = {MPI_REPLACE, MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND, MPI_BOR, MPI_BXOR};
    const char* const types[] = {"basic", "waywiser"};
    MPI_Comm comm;
    seed((unsigned)number, 0); /* an odd number of elements: PETSc takes two PetscInt for a pair of MPI_MAXLOC */
    const int kind = (int)below(on_gpu > 0 ? 2 : 4), each = kind == 3 ? 1 : 1 + 2 * (int)below(4);
    const MPI_Op op = kind == 3 ? (below(2) ? MPI_MAXLOC : MPI_MINLOC) : operations[below(kind == 0 ? 5 : 8)];
    const unsigned parts = 1 + below(2);
    const PetscBool next = (PetscBool)(below(3) == 0);
    MPI_Datatype unit;
    PetscCallMPI(MPI_Type_contiguous(each, elements[kind], &unit));
    PetscCallMPI(MPI_Type_commit(&unit));
    PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, rank % (int)parts, -rank, &comm)); /* ranks in another order */
    PetscCallMPI(MPI_Comm_rank(comm, &here));
    PetscCallMPI(MPI_Comm_size(comm, &ranks));
    for (int type = 0; type < 2; ++type) {
      PetscSF sf;
      PetscCall(PetscSFCreate(comm, &sf));
      PetscCall(PetscSFSetType(sf, types[type]));
      for (int again = 0; again < 2; ++again) { /* another graph on the same forest */
        seed((unsigned)number * 2 + (unsigned)again, 1 + rank);
        PetscCall(graph(sf, here, ranks, next));
        for (int round = 0; round < 2; ++round)
          PetscCall(operate(sf, each == 1 ? elements[kind] : unit, elements[kind], each, op, arrays[type], used,
                            (PetscBool)(op == MPI_SUM && kind < 2), next));
      }
      PetscCall(PetscSFDestroy(&sf));
    }
    for (size_t i = 0; i < ALL_BYTES; ++i)
      PetscCheck(arrays[0][i] == arrays[1][i], PETSC_COMM_SELF, PETSC_ERR_PLIB, "-seed %d: byte %zu differs",
                 (int)number, i);
    PetscCallMPI(MPI_Comm_free(&comm));
    PetscCallMPI(MPI_Type_free(&unit));
  }
  for (int type = 0; type < 2; ++type) PetscCall(PetscDeviceFree(NULL, arrays[type]));
  PetscCall(PetscDeviceFree(NULL, used));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d cases are equal\n", (int)cases));
  PetscCall(PetscFinalize());
  return 0;
}
