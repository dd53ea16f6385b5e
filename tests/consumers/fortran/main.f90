! Ranks in Fortran: collectives, messages, an operation that begins, a window, a halo exchange, and what an error says.
program consumer
  use waywiser
  implicit none
  integer, parameter :: n = 1000
  type(c_ptr) :: group, window, prepared, message
  type(c_ptr), target :: future
  type(ww_join_options) :: options
  real(c_double), target :: x(n), total(n)
  complex(c_float_complex), target :: turn, turned
  integer(c_int64_t), target :: flags(2) = 0
  integer(c_int64_t) :: places(n)
  integer(c_int) :: me, ranks, next, before
  integer :: unit
  type(ww_message_status) :: status

  if (ww_error_text() /= '') error stop 'there was no error'
  options%size = c_sizeof(options)
  options%max_ctas = -1
  if (ww_join(options, group) /= ww_invalid_input) error stop 'a negative number of blocks'
  options%max_ctas = 8
  options%on_failure = ww_on_failure_raise
  options%timeout = 45
  call check(ww_join(options, group))
  me = ww_rank(group)
  ranks = ww_size(group)
  next = modulo(me + 1, ranks)
  before = modulo(me - 1, ranks)
  if (ww_timeout(group) /= 45) error stop 'the timeout is another'

  x = me + 1
  call check(ww_all_reduce(group, c_loc(x), c_loc(total), int(n, c_size_t), ww_float64, ww_sum, ww_wait))
  if (any(total /= ranks * (ranks + 1) / 2)) error stop 'all_reduce'
  turn = merge((1., 0.), (0., 1.), me == 0)
  call check(ww_all_reduce(group, c_loc(turn), c_loc(turned), 1_c_size_t, ww_complex64, ww_prod, ww_wait))
  if (abs(turned - (0., 1.)**(ranks - 1)) > 1e-6) error stop 'the product of complex numbers'

  call check(ww_scan(group, c_loc(x), c_loc(total), int(n, c_size_t), ww_float64, ww_sum, ww_wait))
  if (any(total /= (me + 1) * (me + 2) / 2)) error stop 'scan'
  call check(ww_exscan(group, c_loc(x), c_loc(total), int(n, c_size_t), ww_float64, ww_max, ww_wait))
  if (me > 0 .and. any(total /= me)) error stop 'exscan'
  call check(ww_maxloc(group, c_loc(x), spread(int(10 * me, c_int64_t), 1, n), c_loc(total), places, int(n, c_size_t), &
    ww_float64))
  if (any(total /= ranks) .or. any(places /= 10 * (ranks - 1))) error stop 'maxloc'
  call check(ww_minloc(group, c_loc(x), spread(int(10 * me, c_int64_t), 1, n), c_loc(total), places, int(n, c_size_t), &
    ww_float64))
  if (any(total /= 1) .or. any(places /= 0)) error stop 'minloc'
  call reduce_integers()

  call check(ww_prepare_collective(group, 'all_reduce'//c_null_char, c_loc(x), c_loc(total), int(n, c_size_t), ww_float64, &
    ww_max, 0, prepared))
  call check(ww_prepared_start(prepared, c_null_ptr))
  call check(ww_prepared_wait(prepared))
  call ww_prepared_free(prepared)
  if (any(total /= ranks)) error stop 'a prepared all_reduce'

  call check(ww_recv(group, c_loc(total), int(n, c_size_t), ww_float64, before, 5, ww_begin(future)))
  call check(ww_send(group, c_loc(x), int(n, c_size_t), ww_float64, next, 5, ww_wait))
  call check(ww_future_wait(future))
  call ww_future_free(future)
  if (any(total /= before + 1)) error stop 'send and recv'

  call check(ww_send(group, c_loc(x), int(n, c_size_t), ww_float64, next, 6, ww_wait))
  call check(ww_probe(group, ww_any_source, ww_any_tag, status))
  if (status%count /= n .or. status%type /= ww_float64) error stop 'probe'
  total = 0
  call check(ww_recv_status(group, c_loc(total), int(n, c_size_t), ww_float64, ww_any_source, ww_any_tag, status, ww_wait))
  if (status%source /= before .or. status%tag /= 6 .or. any(total /= before + 1)) error stop 'recv from any rank'

  call check(ww_send(group, c_loc(x), int(n, c_size_t), ww_float64, next, 7, ww_wait))
  call check(ww_mprobe(group, before, 7, -1._c_double, status, message))
  total = 0
  call check(ww_mrecv(message, c_loc(total), int(n, c_size_t), ww_float64))
  call ww_message_free(message)
  if (status%count /= n .or. any(total /= before + 1)) error stop 'a message that is taken'

  call check(ww_expose(group, c_loc(flags), c_sizeof(flags), window))
  call check(ww_signal(window, next, 8_c_size_t, 7_c_int64_t))
  call check(ww_wait_signal(window, 8_c_size_t, 7_c_int64_t))
  call check(ww_barrier(group, ww_wait))
  call ww_window_free(window)

  call exchange_a_grid()
  call meet_without_a_launcher()
  call leave_out_what_may_be_null()
  call parts_of_the_group()
  if (ww_failure(group) /= ww_ok) error stop 'the group has failed'

  if (ww_barrier(c_null_ptr, ww_wait) /= ww_invalid_input) error stop 'a barrier of no group'
  if (ww_error_text() /= 'the group is NULL') error stop 'the text of the error'
  if (ww_error_name(ww_timed_out) /= 'timeout') error stop 'the name of an error'

  print '(a, i0, a, i0, 2a)', 'rank ', me, ' of ', ranks, ': ', ww_version()
  call check(ww_close(group))
  call ww_group_free(group)

contains
  ! Of rank + 1 and of rank.
  subroutine reduce_integers()
    integer(c_int), parameter :: operations(6) = [ww_band, ww_bor, ww_bxor, ww_land, ww_lor, ww_lxor]
    integer(c_int32_t), target :: found(2)
    integer :: which, wanted(2), other(2), from
    do which = 1, 6
      found = [me + 1, me]
      call check(ww_all_reduce(group, c_loc(found), c_loc(found), 2_c_size_t, ww_int32, operations(which), ww_wait))
      wanted = [1, 0]
      do from = 1, ranks - 1
        other = [from + 1, from]
        select case (operations(which))
        case (ww_band); wanted = iand(wanted, other)
        case (ww_bor); wanted = ior(wanted, other)
        case (ww_bxor); wanted = ieor(wanted, other)
        case (ww_land); wanted = merge(1, 0, wanted /= 0 .and. other /= 0)
        case (ww_lor); wanted = merge(1, 0, wanted /= 0 .or. other /= 0)
        case (ww_lxor); wanted = merge(1, 0, wanted /= 0 .neqv. other /= 0)
        end select
      end do
      if (any(found /= wanted)) error stop 'an operation of integers'
    end do
  end subroutine

  ! A group of this process alone.
  subroutine meet_without_a_launcher()
    type(ww_unique_id) :: id
    type(c_ptr) :: other, futures(2)
    integer(c_size_t) :: place
    call check(ww_make_unique_id(id=id))
    call check(ww_join_by_id(id=id, rank=0, size=1, group=other))
    call check(ww_recv(other, c_loc(total), 1_c_size_t, ww_float64, 0, 4, ww_begin(future)))
    futures = [c_null_ptr, future]
    call check(ww_send(other, c_loc(x), 1_c_size_t, ww_float64, 0, 4, ww_wait))
    call check(ww_wait_any(futures, 2_c_size_t, place))
    call check(ww_wait_all(futures, 2_c_size_t))
    if (place /= 1 .or. total(1) /= x(1)) error stop 'a message to itself'
    call ww_future_free(future)
    call check(ww_close(other))
    call ww_group_free(other)
  end subroutine

  ! A file by the usual way; the plan of the environment; a server that there is not, by the usual key.
  subroutine leave_out_what_may_be_null()
    character(len=20) :: name
    type(c_ptr) :: file, plan, remote
    type(ww_plan_facts) :: facts
    integer(c_int64_t) :: bytes
    write(name, '(a, i0)') 'fortran-', me
    call check(ww_file_replace(path=trim(name)//c_null_char, file=file))
    call check(ww_file_write(file, 0_c_int64_t, c_loc(x), c_sizeof(x)))
    call check(ww_file_close(file))
    call ww_file_free(file)
    call check(ww_file_open(path=trim(name)//c_null_char, file=file))
    call check(ww_file_size(file, bytes))
    if (bytes /= c_sizeof(x)) error stop 'the size of a file'
    call ww_file_free(file)
    open(newunit=unit, file=name)
    close(unit, status='delete')
    if (ww_plan_open(plan=plan) == ww_ok) then  ! waywiser run has found one of this machine
      call ww_plan_free(plan)
    else if (index(ww_error_text(), 'WAYWISER_PLAN is not set') == 0) then
      error stop 'a plan without a name'
    end if
    if (ww_plan_describe(plan=c_null_ptr, facts=facts) /= ww_invalid_input) error stop 'a plan that there is not'
    if (ww_remote_open(address='127.0.0.1:1'//c_null_char, gpu=0, timeout=1._c_double, remote=remote) == ww_ok) &
      error stop 'a server that there is not'
  end subroutine

  ! Those of this machine, which are all; and one of this rank alone, whose end is not that of the others.
  subroutine parts_of_the_group()
    type(c_ptr) :: part
    if (ww_local_rank(group) /= me .or. ww_local_size(group) /= ranks) error stop 'the ranks of this machine'
    call check(ww_split_by_machine(group, -me, part))
    if (ww_rank(part) /= ranks - 1 - me .or. ww_size(part) /= ranks) error stop 'a group of this machine'
    call ww_group_free(part)
    call check(ww_split_apart(group, me, 0, part))
    call check(ww_abort(part, 'out of fuel'//c_null_char))
    if (ww_failure(part) == ww_ok) error stop 'an abort'
    if (index(ww_error_text(), 'out of fuel') == 0) error stop 'why a group was ended'
    call ww_group_free(part)
  end subroutine

  ! Columns are cut over the ranks; the whole grid is periodic in both directions.
  subroutine exchange_a_grid()
    integer, parameter :: rows = 4
    integer(c_int64_t) :: shape(2), first(2), cells(2)
    real(c_double), allocatable, target :: field(:, :)
    type(ww_halo_field) :: fields(1)
    type(ww_halo_totals) :: totals
    type(ww_halo_seconds) :: seconds
    type(ww_halo_side) :: side
    type(c_ptr) :: halo
    integer(c_size_t) :: sides
    integer :: columns, row, column

    shape = [3_c_int64_t * ranks, int(rows, c_int64_t)]
    first = [3_c_int64_t * me, 0_c_int64_t]
    cells = [3_c_int64_t, int(rows, c_int64_t)]
    columns = int(shape(1))
    allocate (field(0:rows + 1, 0:4), source=-1._c_double)
    do column = 1, 3
      do row = 1, rows
        field(row, column) = row + 10 * (3 * me + column)
      end do
    end do
    call check(ww_halo_grid(group, 2, shape, [1_c_int64_t, 1_c_int64_t], [1, 1], first, cells, halo))
    fields(1) = ww_halo_field(values=c_loc(field))
    call check(ww_halo_set_fields(halo, fields, 1_c_size_t))
    call check(ww_halo_use(halo, ww_halo_per_neighbor))
    call check(ww_halo_exchange(halo, c_null_ptr))
    do column = 0, 4
      do row = 0, rows + 1
        if (field(row, column) /= modulo(row - 1, rows) + 1 + 10 * (modulo(3 * me + column - 1, columns) + 1)) &
          error stop 'a ghost of a halo exchange'
      end do
    end do
    call check(ww_halo_counts(halo, ww_halo_per_neighbor, totals))
    if (totals%exchanges /= 1) error stop 'the counts of a halo exchange'
    if (index(ww_halo_explain(halo), 'per_neighbor: ') /= 1) error stop 'the explanation of a halo exchange'
    call check(ww_halo_times(halo, seconds))
    if (.not. (0 < seconds%inside .and. seconds%inside <= seconds%elapsed)) error stop 'the times of a halo exchange'
    call check(ww_halo_side_count(halo, sides))
    call check(ww_halo_side_at(halo, 0_c_size_t, side))
    if (side%cells == 0 .or. side%variant /= ww_halo_per_neighbor) error stop 'a side of a halo exchange'
    call check(ww_halo_use_sides(halo, [(ww_halo_packed, column=1, int(sides))], sides))
    if (index(ww_halo_explain(halo), 'packed: ') /= 1) error stop 'the sides of a halo exchange'
    call ww_halo_free(halo)
  end subroutine

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == ww_ok) return
    print *, ww_error_text()
    error stop 1
  end subroutine
end program
