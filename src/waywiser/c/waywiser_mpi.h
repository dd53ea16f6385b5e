/* Ranks of an MPI communicator become ranks of a group. This header needs mpi.h; the library knows nothing of MPI. */
#ifndef WAYWISER_C_WAYWISER_MPI_H
#define WAYWISER_C_WAYWISER_MPI_H

#include <mpi.h>
#include <string.h>

#include "waywiser/c/waywiser.h"

/* Which host rank 0 must reach: the name that MPI has for a machine other than rank 0's, of the highest rank that is on
 * one; "" if there is none. All ranks of `comm` call it. `name`: MPI_MAX_PROCESSOR_NAME + 1 characters. */
static inline void ww_mpi_other_machine(MPI_Comm comm, char* name) {
  int rank = 0, lowest = 0, elsewhere = 0, length = 0;
  MPI_Comm local;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local);
  MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, local);
  MPI_Comm_free(&local);
  const int mine = lowest == 0 ? 0 : rank;
  MPI_Allreduce(&mine, &elsewhere, 1, MPI_INT, MPI_MAX, comm);
  memset(name, 0, MPI_MAX_PROCESSOR_NAME + 1);
  if (elsewhere == 0) return;
  MPI_Get_processor_name(name, &length);
  MPI_Bcast(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, elsewhere, comm);
}

/* An id for the ranks of `comm`, made by its rank 0; all of them call it, and MPI carries it. If the ranks are on
 * several machines, rank 0 listens on its address towards another one. Returns what ww_make_unique_id returns at rank
 * 0; the other ranks then get an id that is refused. */
static inline int ww_unique_id_from_mpi(MPI_Comm comm, ww_unique_id* id) {
  char name[MPI_MAX_PROCESSOR_NAME + 1];
  int rank = 0, error = WW_OK;
  MPI_Comm_rank(comm, &rank);
  ww_mpi_other_machine(comm, name);
  memset(id, 0, sizeof *id);
  if (rank == 0) error = ww_make_unique_id(name, id);
  MPI_Bcast(id, sizeof *id, MPI_BYTE, 0, comm);
  return error;
}

/* ww_join for the ranks of `comm`, in its order; all of them call it. */
static inline int ww_join_mpi(MPI_Comm comm, const ww_join_options* options, ww_group** group) {
  ww_unique_id id;
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int error = ww_unique_id_from_mpi(comm, &id);
  return error != WW_OK ? error : ww_join_by_id(options, &id, rank, size, group);
}

#endif
