! Ranks of MPI add up their numbers in a group, whose id MPI carries.
program from_mpi
  use mpi
  use waywiser
  implicit none
  type(ww_unique_id) :: id
  type(c_ptr) :: group
  real(c_double), target :: x(1), total(1)
  integer :: rank, ranks, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  if (rank == 0) call check(ww_make_unique_id(c_null_char, id))
  call MPI_Bcast(id%bytes, 128, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
  call check(ww_join_by_id(id=id, rank=rank, size=ranks, group=group))
  x = rank + 1
  call check(ww_all_reduce(group, c_loc(x), c_loc(total), 1_c_size_t, ww_float64, ww_sum, ww_wait))
  if (ww_rank(group) /= rank .or. total(1) /= ranks * (ranks + 1) / 2) error stop 'the sum'
  call check(ww_close(group))
  call ww_group_free(group)
  print '(a, i0, a)', 'rank ', rank, ': a group'
  call MPI_Finalize(ierror)

contains
  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == ww_ok) return
    print *, ww_error_text()
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
