! Heat conduction in a plate, from Fortran. heat2d.c tells how to build.
program main
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use heat2d
  implicit none

  integer, parameter :: cells = 258
  real(c_double), allocatable, target :: u(:, :), v(:, :)
  type(heat2d_arrays) :: arrays
  type(c_ptr) :: loaded
  character(len=1024) :: folder
  integer(c_int) :: code

  folder = "heat2d"
  if (command_argument_count() > 0) call get_command_argument(1, folder)
  code = heat2d_open(0_c_int)
  if (code /= 0) then
    write (error_unit, "(a)") "no GPU: " // heat2d_error(code)
    stop 1
  end if
  code = heat2d_load(loaded, folder)
  if (code /= 0) call fail()

  ! The first axis of C is the last of Fortran: the hot edge of the other hosts is u(:, 1).
  allocate (u(cells, cells), v(cells, cells))
  u = 0
  u(:, 1) = 1
  v = u
  arrays = heat2d_arrays(c_loc(u), c_loc(v))
  code = heat2d_advance_arrays(loaded, arrays, 1000_c_int)
  if (code /= 0) call fail()
  call heat2d_unload(loaded)
  print "(es24.17)", u(cells / 2 + 1, 11)
  deallocate (u, v)

contains

  subroutine fail()
    write (error_unit, "(a)") heat2d_message(loaded)
    stop 1
  end subroutine
end program
