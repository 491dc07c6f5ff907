"""The C header of a bundle: arguments, functions and numbers, for C99 and C++."""

from __future__ import annotations

from timetile.dialects.cell_types import CELL_TYPES, STORED_TYPES
from timetile.runtime.bundle.c_names import c_word, distinct_names
from timetile.runtime.bundle.plan import Argument, BundlePlan

C_TYPES = {str(kind): row.c for table in (CELL_TYPES, STORED_TYPES) for kind, row in table.items()}
"""
The C type of a number, by the text of the kernel's type: an `i1` is one byte, and of an `f16` or a
`bf16` C has the bits.
"""

OWN_CODES = {
    -1: "the number of steps is negative",
    -2: "no memory is left on the host",
    -3: "a field has no address, or an address that is no multiple of 16",
    -4: "the folder's name is too long",
}
"""What the negative codes of a bundle mean; positive codes are the CUDA driver's."""


def member_names(plan: BundlePlan) -> list[str]:
    """The name of each argument in C."""
    return distinct_names(argument.name for argument in plan.arguments)


def named_arguments(plan: BundlePlan, kind: str) -> list[tuple[Argument, str]]:
    """The arguments of a kind, each with its name in C."""
    found = zip(plan.arguments, member_names(plan))
    return [(argument, member) for argument, member in found if argument.kind == kind]


def shape_text(argument: Argument) -> str:
    """The shape and the size of a field, for a comment."""
    shape = " x ".join(map(str, argument.shape))
    return f"{shape} of {argument.type}, {argument.bytes} bytes"


def members(plan: BundlePlan, *, on_host: bool) -> str:
    """The members of the struct of arguments: fields as device memory, or as arrays."""
    fields = [
        f"  {f'{C_TYPES[a.type]} *' if on_host else 'CUdeviceptr '}{member}; /* {shape_text(a)} */"
        for a, member in named_arguments(plan, "field")
    ]
    scalars = [f"  {C_TYPES[a.type]} {member};" for a, member in named_arguments(plan, "scalar")]
    return "\n".join([*fields, *scalars]) or "  char nothing;"


def header(plan: BundlePlan) -> str:
    """The header's text."""
    name = c_word(plan.name)
    steps = "" if plan.steps is None else steps_macro(name, plan.steps)
    return f"""\
/* {name}: made by timetile. Needs cuda.h and the CUDA driver (-lcuda). */
#ifndef TIMETILE_{name.upper()}_H
#define TIMETILE_{name.upper()}_H

#include <cuda.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif
{steps}
/* Fields are device memory of at least so many bytes, 16-byte aligned, row-major, with halos. */
typedef struct {{
{members(plan, on_host=False)}
}} {name}_arguments;

/* Fields are arrays of the host, row-major, with halos. */
typedef struct {{
{members(plan, on_host=True)}
}} {name}_arrays;

typedef struct {name}_program {name}_program;

{declarations(name)}
#ifdef __cplusplus
}}
#endif

#endif
"""


def steps_macro(name: str, steps: int) -> str:
    """The number of steps of the program's text, or of the option `--steps`."""
    return (
        f"\n/* The steps of the program's own time loop. */\n#define {name.upper()}_STEPS {steps}\n"
    )


def declarations(name: str) -> str:
    """The declarations of the functions."""
    return f"""\
/* Each int is 0, or a code with the text {name}_error(code): positive codes are a CUresult. */

/* Open a GPU by number and make its primary context current, for hosts without a context. */
int {name}_open(int gpu);

/* Load the kernels from a folder into the current context. After a failure, *program has the
   message, and is given back by {name}_unload like any other; 0 without memory on the host. */
int {name}_load({name}_program **program, const char *folder);

/* Run steps on a stream. Asynchronous, after scratch memory has been taken in the first run. */
int {name}_run({name}_program *program, const {name}_arguments *arguments, int steps,
  CUstream stream);

/* Run steps, and put the fields in the order of the next call: buffers that take turns have
   changed places after an odd number of steps. */
int {name}_advance({name}_program *program, {name}_arguments *arguments, int steps,
  CUstream stream);

/* Copy arrays to the GPU, advance, and copy the fields of the next call into the arrays. Waits. */
int {name}_advance_arrays({name}_program *program, const {name}_arrays *arrays, int steps);

/* The field, counted in the struct, with the k-th result of the last run's last step. */
int {name}_latest(const {name}_program *program, int k);

/* The name or the sentence of a code. */
const char *{name}_error(int code);

/* The last failure in full: the call, the kernel or the field, the path, and the code's name. */
const char *{name}_message(const {name}_program *program);

/* Give everything back. */
void {name}_unload({name}_program *program);
"""
