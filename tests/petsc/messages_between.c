/* MPI messages of the program between the beginning and the end of a broadcast, where one rank waits for the other in
 * MPI while that one waits for the broadcast, and the other way round. All are too large to be on their way at once. */
#include <petscsf.h>

#define COUNT 400000

int main(int argc, char** argv) {
  static double root[COUNT], leaf[COUNT], message[COUNT];
  PetscSFNode* roots;
  PetscSF sf;
  int rank, ranks;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(PetscMalloc1(COUNT, &roots));
  for (PetscInt i = 0; i < COUNT; ++i) {
    roots[i].rank = (rank + 1) % ranks;
    roots[i].index = COUNT - 1 - i;
    root[i] = rank * 1e6 + i;
  }
  PetscCall(PetscSFCreate(PETSC_COMM_WORLD, &sf));
  PetscCall(PetscSFSetFromOptions(sf));
  PetscCall(PetscSFSetGraph(sf, COUNT, COUNT, NULL, PETSC_COPY_VALUES, roots, PETSC_OWN_POINTER));
  for (int early = 0; early < 2; ++early) { /* whether rank 1 receives before its broadcast */
    MPI_Request sent = MPI_REQUEST_NULL;
    if (rank == 0 && early) PetscCallMPI(MPI_Isend(root, COUNT, MPI_DOUBLE, 1, 5, PETSC_COMM_WORLD, &sent));
    if (rank == 1 && early)
      PetscCallMPI(MPI_Recv(message, COUNT, MPI_DOUBLE, 0, 5, PETSC_COMM_WORLD, MPI_STATUS_IGNORE));
    PetscCall(PetscSFBcastBegin(sf, MPI_DOUBLE, root, leaf, MPI_REPLACE));
    if (rank == 0 && !early) PetscCallMPI(MPI_Ssend(root, COUNT, MPI_DOUBLE, 1, 5, PETSC_COMM_WORLD));
    PetscCall(PetscSFBcastEnd(sf, MPI_DOUBLE, root, leaf, MPI_REPLACE));
    if (rank == 1 && !early)
      PetscCallMPI(MPI_Recv(message, COUNT, MPI_DOUBLE, 0, 5, PETSC_COMM_WORLD, MPI_STATUS_IGNORE));
    PetscCallMPI(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    for (PetscInt i = 0; i < COUNT; ++i) {
      PetscCheck(leaf[i] == (rank + 1) % ranks * 1e6 + COUNT - 1 - i, PETSC_COMM_SELF, PETSC_ERR_PLIB, "leaf %d",
                 (int)i);
      PetscCheck(rank != 1 || message[i] == i, PETSC_COMM_SELF, PETSC_ERR_PLIB, "message %d", (int)i);
      leaf[i] = message[i] = -1;
    }
  }
  PetscCall(PetscSFDestroy(&sf));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "all has arrived\n"));
  PetscCall(PetscFinalize());
  return 0;
}
