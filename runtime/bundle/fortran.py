"""The Fortran module of a bundle: the types and functions of its C header, by `iso_c_binding`."""

from __future__ import annotations

import re
from hashlib import sha256

from timetile.runtime.bundle.c_header import C_TYPES, named_arguments, shape_text
from timetile.runtime.bundle.c_names import c_word
from timetile.runtime.bundle.plan import BundlePlan

LONGEST = 63
"""Characters of a name in Fortran."""

SUFFIX = len("_advance_arrays")
"""Characters of the longest ending that the module adds to a name."""

FORTRAN_TYPES = {
    "double": "real(c_double)",
    "float": "real(c_float)",
    "int64_t": "integer(c_int64_t)",
    "int32_t": "integer(c_int32_t)",
    "uint8_t": "integer(c_int8_t)",
}
"""The type of a number in Fortran, by the type in C."""


FUNCTIONS = (
    "open", "load", "run", "advance", "advance_arrays", "latest", "unload", "error", "message",
)  # fmt: skip
"""What the module has for hosts, behind the program's name."""

TAKEN = re.compile(r"[^A-Za-z].*|c|c_\w*|iso_\w*|trim", flags=re.IGNORECASE)
"""Names that Fortran does not allow, or that the module uses for others."""


def fortran_name(name: str, longest: int = LONGEST) -> str:
    """A name that begins with a letter; longer names end in a digest."""
    made = f"n{name}" if TAKEN.fullmatch(name) else name
    if len(made) > longest:
        made = f"{made[: longest - 9]}_{sha256(name.encode()).hexdigest()[:8]}"
    return made


def components(plan: BundlePlan, *, on_host: bool) -> str:
    """The components of the type of arguments: fields as device addresses, or as arrays."""
    lines: list[str] = []
    for argument, member in named_arguments(plan, "field"):
        kind = "type(c_ptr)" if on_host else "integer(c_long_long)"
        lines.append(f"    {kind} :: {fortran_name(member)} ! {shape_text(argument)}")
    for argument, member in named_arguments(plan, "scalar"):
        lines.append(f"    {FORTRAN_TYPES[C_TYPES[argument.type]]} :: {fortran_name(member)}")
    return "\n".join(lines) or "    integer(c_signed_char) :: nothing"


def fortran_module(plan: BundlePlan) -> str:
    """The module's text: Fortran 2003, lines of at most 132 characters."""
    c_prefix = c_word(plan.name)
    name = fortran_name(c_prefix, LONGEST - SUFFIX)
    steps = ""
    if plan.steps is not None:
        steps = f"  integer(c_int), parameter, public :: {name}_steps = {plan.steps}\n"
    names = ", &\n    ".join(f"{name}_{each}" for each in FUNCTIONS)
    interfaces = INTERFACES.replace("@NAME@", name).replace("@C@", c_prefix)
    contained = CONTAINED.replace("@NAME@", name)
    return f"""\
! {c_prefix}: made by timetile. The functions are described in {c_prefix}.h.
! Arrays of the host are in the order of C: a field of 3 x 4 cells is an array of shape (4, 3).
module {name}
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: &
    {names}
{steps}
  type, bind(c), public :: {name}_arguments
{components(plan, on_host=False)}
  end type

  type, bind(c), public :: {name}_arrays
{components(plan, on_host=True)}
  end type

{interfaces}
{contained}end module
"""


INTERFACES = """\
  interface
    integer(c_int) function @NAME@_open(gpu) &
        bind(c, name="@C@_open")
      import :: c_int
      integer(c_int), value :: gpu
    end function

    integer(c_int) function c_load(program, folder) &
        bind(c, name="@C@_load")
      import :: c_int, c_ptr, c_char
      type(c_ptr), intent(out) :: program
      character(kind=c_char), intent(in) :: folder(*)
    end function

    integer(c_int) function @NAME@_run(program, arguments, steps, stream) &
        bind(c, name="@C@_run")
      import :: c_int, c_ptr, @NAME@_arguments
      type(c_ptr), value :: program, stream
      type(@NAME@_arguments), intent(in) :: arguments
      integer(c_int), value :: steps
    end function

    integer(c_int) function @NAME@_advance(program, arguments, steps, stream) &
        bind(c, name="@C@_advance")
      import :: c_int, c_ptr, @NAME@_arguments
      type(c_ptr), value :: program, stream
      type(@NAME@_arguments), intent(inout) :: arguments
      integer(c_int), value :: steps
    end function

    integer(c_int) function @NAME@_advance_arrays(program, arrays, steps) &
        bind(c, name="@C@_advance_arrays")
      import :: c_int, c_ptr, @NAME@_arrays
      type(c_ptr), value :: program
      type(@NAME@_arrays), intent(in) :: arrays
      integer(c_int), value :: steps
    end function

    integer(c_int) function @NAME@_latest(program, k) &
        bind(c, name="@C@_latest")
      import :: c_int, c_ptr
      type(c_ptr), value :: program
      integer(c_int), value :: k
    end function

    subroutine @NAME@_unload(program) &
        bind(c, name="@C@_unload")
      import :: c_ptr
      type(c_ptr), value :: program
    end subroutine

    type(c_ptr) function c_error(code) &
        bind(c, name="@C@_error")
      import :: c_int, c_ptr
      integer(c_int), value :: code
    end function

    type(c_ptr) function c_message(program) &
        bind(c, name="@C@_message")
      import :: c_ptr
      type(c_ptr), value :: program
    end function

    integer(c_size_t) function c_length(text) bind(c, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface
"""
"""The functions of the header; `@NAME@` is the name in Fortran, `@C@` the name in C."""

CONTAINED = """\
contains

  function @NAME@_error(code) result(text)
    integer(c_int), intent(in) :: code
    character(len=:), allocatable :: text
    text = from_c(c_error(code))
  end function

  function @NAME@_message(program) result(text)
    type(c_ptr), intent(in) :: program
    character(len=:), allocatable :: text
    text = from_c(c_message(program))
  end function

  function @NAME@_load(program, folder) result(code)
    type(c_ptr), intent(out) :: program
    character(len=*), intent(in) :: folder
    integer(c_int) :: code
    code = c_load(program, trim(folder) // c_null_char)
  end function

  function from_c(address) result(text)
    type(c_ptr), intent(in) :: address
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer(c_size_t) :: k, length
    length = c_length(address)
    call c_f_pointer(address, letters, [length])
    allocate (character(len=length) :: text)
    do k = 1, length
      text(k:k) = letters(k)
    end do
  end function
"""
"""Functions on texts, which differ between C and Fortran."""
