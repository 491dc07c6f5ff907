"""C code loading a bundle's kernels and launching them, with the CUDA driver alone."""

from __future__ import annotations

from collections.abc import Sequence

from timetile.dialects.cell_types import CELL_TYPES
from timetile.lowering.ptx.symbols import symbol
from timetile.lowering.tile_to_gpu.message_buffers import HEADER_WORDS
from timetile.runtime.bundle.c_names import c_word, distinct_names
from timetile.runtime.bundle.plan import Argument, BundleAction, BundlePlan, KernelEntry

C_TYPES = {str(kind): row.c for kind, row in CELL_TYPES.items()}
"""The C type of a number, by the text of the kernel's type; an `i1` is one byte."""


def header(plan: BundlePlan) -> str:
    """The header: the arguments, and three functions."""
    name = c_word(plan.name)
    named = list(zip(plan.arguments, member_names(plan)))
    fields = [
        field_line(argument, member) for argument, member in named if argument.kind == "field"
    ]
    scalars = [f"  {C_TYPES[a.type]} {member};" for a, member in named if a.kind == "scalar"]
    members = "\n".join([*fields, *scalars]) or "  char nothing;"
    latest = ", ".join(map(str, plan.latest))
    return f"""\
/* {name}: {plan.steps} steps, made by timetile. Needs cuda.h and the CUDA driver (-lcuda). */
#ifndef TIMETILE_{name.upper()}_H
#define TIMETILE_{name.upper()}_H

#include <cuda.h>
#include <stdint.h>

/* Fields are device memory of at least so many bytes, 16-byte aligned, row-major, with halos. */
typedef struct {{
{members}
}} {name}_arguments;

typedef struct {name}_program {name}_program;

/* The buffers, counted over the fields above, that hold what the last step wrote: {{{latest}}}. */

/* Load the kernels from a folder into the current context. 0, or a CUresult. */
int {name}_load({name}_program **program, const char *folder);

/* Run {plan.steps} steps on a stream. Asynchronous. 0, or a CUresult. */
int {name}_run({name}_program *program, const {name}_arguments *arguments, CUstream stream);

/* Give everything back. */
void {name}_unload({name}_program *program);

#endif
"""


def member_names(plan: BundlePlan) -> list[str]:
    """The name of each argument in C."""
    return distinct_names(argument.name for argument in plan.arguments)


def field_line(argument: Argument, member: str) -> str:
    """The member of a field."""
    shape = " x ".join(map(str, argument.shape))
    return f"  CUdeviceptr {member}; /* {shape} of {argument.type}, {argument.bytes} bytes */"


def source(plan: BundlePlan) -> str:
    """The source: static tables, and launches in order."""
    name = c_word(plan.name)
    functions = (preparing(name), loading(name), launching(name), running(plan))
    return "\n".join((tables(plan), *functions))


def fields_of(plan: BundlePlan) -> list[Argument]:
    """The fields among the arguments, in order."""
    return [argument for argument in plan.arguments if argument.kind == "field"]


def tables(plan: BundlePlan) -> str:
    """The facts of the kernels, and the members of a loaded program."""
    name = c_word(plan.name)
    kernels = "\n".join(kernel_line(kernel) for kernel in plan.kernels)
    scratch = ", ".join(map(str, plan.scratch)) or "0"
    fields = fields_of(plan)
    return f"""\
/* {name}: {plan.steps} steps, made by timetile. */
#include "{name}.h"

#include <stdio.h>
#include <stdlib.h>

#define TRY(call) \\
  do {{ \\
    CUresult failed = (call); \\
    if (failed != CUDA_SUCCESS) return failed; \\
  }} while (0)

enum {{ KERNELS = {len(plan.kernels)}, FIELDS = {len(fields)}, SCRATCH = {len(plan.scratch)} }};

typedef struct {{
  const char *name, *file;
  unsigned grid, block, shared_bytes, blocks_per_tile, message_words;
}} kernel_facts;

static const kernel_facts facts[KERNELS + 1] = {{
{kernels}
  {{0, 0, 0, 0, 0, 0, 0}}
}};

static const size_t scratch_bytes[SCRATCH + 1] = {{{scratch}{", 0" if plan.scratch else ""}}};

struct {name}_program {{
  CUmodule modules[KERNELS + 1];
  CUfunction functions[KERNELS + 1];
  CUdeviceptr scratch[SCRATCH + 1], messages[KERNELS + 1];
  /* Tiles that the device holds at once, of kernels whose blocks wait. */
  unsigned tiles[KERNELS + 1];
}};
"""


def preparing(name: str) -> str:
    """The C function setting a kernel's attributes and allocating its messages."""
    return f"""\
static size_t message_bytes(const kernel_facts *kernel, unsigned tiles) {{
  return 8 * ((size_t){HEADER_WORDS} + (size_t)tiles * kernel->message_words);
}}

static CUresult prepare({name}_program *program, int k) {{
  const kernel_facts *kernel = &facts[k];
  CUfunction function = program->functions[k];
  if (kernel->shared_bytes > 48 * 1024)
    TRY(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           (int)kernel->shared_bytes));
  if (kernel->blocks_per_tile == 1) return CUDA_SUCCESS;
  CUdevice device;
  int each, multiprocessors;
  TRY(cuCtxGetDevice(&device));
  TRY(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, (int)kernel->block,
                                                  kernel->shared_bytes));
  unsigned all = kernel->grid / kernel->blocks_per_tile;
  unsigned held = (unsigned)(each * multiprocessors) / kernel->blocks_per_tile;
  program->tiles[k] = held < all ? held : all;
  if (program->tiles[k] == 0) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return cuMemAlloc(&program->messages[k], message_bytes(kernel, program->tiles[k]));
}}
"""


def loading(name: str) -> str:
    """The C functions to load a program and to unload a program."""
    return f"""\
int {name}_load({name}_program **made, const char *folder) {{
  {name}_program *program = calloc(1, sizeof *program);
  if (program == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *made = program;
  for (int k = 0; k < KERNELS; k++) {{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, facts[k].file);
    if (length < 0 || (size_t)length >= sizeof path) return CUDA_ERROR_FILE_NOT_FOUND;
    TRY(cuModuleLoad(&program->modules[k], path));
    TRY(cuModuleGetFunction(&program->functions[k], program->modules[k], facts[k].name));
    TRY(prepare(program, k));
  }}
  for (int k = 0; k < SCRATCH; k++) TRY(cuMemAlloc(&program->scratch[k], scratch_bytes[k]));
  return CUDA_SUCCESS;
}}

void {name}_unload({name}_program *program) {{
  if (program == 0) return;
  for (int k = 0; k < SCRATCH; k++) if (program->scratch[k]) cuMemFree(program->scratch[k]);
  for (int k = 0; k < KERNELS; k++) {{
    if (program->messages[k]) cuMemFree(program->messages[k]);
    if (program->modules[k]) cuModuleUnload(program->modules[k]);
  }}
  free(program);
}}
"""


def launching(name: str) -> str:
    """The C function to launch a kernel."""
    return f"""\
/* `parameters` has room for two more: kernels whose blocks wait take words and the tiles. */
static CUresult launch({name}_program *program, int k, void **parameters, int count,
                       CUstream stream) {{
  const kernel_facts *kernel = &facts[k];
  if (kernel->blocks_per_tile == 1)
    return cuLaunchKernel(program->functions[k], kernel->grid, 1, 1, kernel->block, 1, 1,
                          kernel->shared_bytes, stream, parameters, 0);
  int32_t tiles = (int32_t)program->tiles[k];
  parameters[count] = &program->messages[k];
  parameters[count + 1] = &tiles;
  TRY(cuMemsetD8Async(program->messages[k], 0, message_bytes(kernel, program->tiles[k]), stream));
  unsigned blocks = program->tiles[k] * kernel->blocks_per_tile;
  return cuLaunchCooperativeKernel(program->functions[k], blocks, 1, 1, kernel->block, 1, 1,
                                   kernel->shared_bytes, stream, parameters);
}}
"""


def running(plan: BundlePlan) -> str:
    """The C function with the launches of a run, in order."""
    name = c_word(plan.name)
    named = zip(plan.arguments, member_names(plan))
    fields = [member for argument, member in named if argument.kind == "field"]
    buffers = "\n".join(f"  buffer[{k}] = arguments->{member};" for k, member in enumerate(fields))
    launches = "\n".join(lines(plan, plan.actions, "  "))
    return f"""\
int {name}_run({name}_program *program, const {name}_arguments *arguments, CUstream stream) {{
  CUdeviceptr buffer[FIELDS + SCRATCH + 1];
{buffers}
  for (int k = 0; k < SCRATCH; k++) buffer[FIELDS + k] = program->scratch[k];
  /* A run of no steps uses none of these. */
  (void)launch, (void)buffer, (void)stream;
{launches}
  return CUDA_SUCCESS;
}}
"""


def kernel_line(kernel: KernelEntry) -> str:
    """A row of the table of kernels."""
    return (
        f'  {{"{symbol(kernel.name)}", "{kernel.file}", {kernel.grid}, {kernel.block}, '
        f"{kernel.shared_bytes}, {kernel.blocks_per_tile}, {kernel.message_words}}},"
    )


def lines(plan: BundlePlan, actions: Sequence[BundleAction], indent: str) -> list[str]:
    """The statements of actions."""
    found: list[str] = []
    for action in actions:
        if "repeat" in action:
            found.append(f"{indent}for (int again = 0; again < {action['repeat']}; again++) {{")
            found += lines(plan, action["actions"], indent + "  ")
            found.append(f"{indent}}}")
        elif "copy" in action:
            first, other = action["copy"]
            size = bytes_of(plan, first)
            found.append(
                f"{indent}TRY(cuMemcpyDtoDAsync(buffer[{other}], buffer[{first}], {size}, stream));"
            )
        else:
            found += launch_lines(plan, action, indent)
    return found


def bytes_of(plan: BundlePlan, buffer: int) -> int:
    """The size of a buffer."""
    sizes = [a.bytes for a in plan.arguments if a.kind == "field"] + plan.scratch
    return sizes[buffer]


def launch_lines(plan: BundlePlan, action: BundleAction, indent: str) -> list[str]:
    """The statement of a launch: parameters by address."""
    names = [kernel.name for kernel in plan.kernels]
    members = member_names(plan)
    place = names.index(action["launch"])
    kinds = plan.kernels[place].parameters
    before: list[str] = []
    values: list[str] = []
    for number, (operand, kind) in enumerate(zip(action["operands"], kinds, strict=True)):
        if "buffer" in operand:
            values.append(f"&buffer[{operand['buffer']}]")
            continue
        c_type = C_TYPES[kind]
        if "scalar" in operand:
            position: int = operand["scalar"]
            value = f"arguments->{members[position]}"
        else:
            value = c_number(operand["constant"])
        before.append(f"{indent}  {c_type} number{number} = {value};")
        values.append(f"&number{number}")
    return [
        f"{indent}{{ /* {c_word(action['launch'])} */",
        *before,
        f"{indent}  void *parameters[] = {{{', '.join([*values, '0', '0'])}}};",
        f"{indent}  TRY(launch(program, {place}, parameters, {len(values)}, stream));",
        f"{indent}}}",
    ]


def c_number(value: float | int) -> str:
    """A number as exact C text."""
    return value.hex() if isinstance(value, float) else str(value)
