"""C code loading a bundle's kernels and launching them, with the CUDA driver alone; C99 and C++."""

from __future__ import annotations

from timetile.lowering.tile_to_gpu.message_buffers import HEADER_WORDS
from timetile.runtime.bundle.c_header import OWN_CODES, named_arguments
from timetile.runtime.bundle.c_names import c_word
from timetile.runtime.bundle.c_tables import TableMaker, tables_text
from timetile.runtime.bundle.plan import BundlePlan


def source(plan: BundlePlan) -> str:
    """The source: static tables, and the functions of the header."""
    name = c_word(plan.name)
    maker = TableMaker(plan)
    tables = maker.tables()
    numbers = maker.computed()
    numbers += [
        f"  const {c_type} number{k} = {value};" for (c_type, value), k in tables.numbers.items()
    ]
    addresses = [f"(const void *)&number{k}" for k in range(len(tables.numbers))]
    parts = (
        PREAMBLE, tables_text(plan, tables), failures(), FAILING, LOADING, LAUNCHING, RUNNING,
        run_text(plan, "\n".join(numbers), ", ".join([*addresses, "0"])), arrays_text(plan),
    )  # fmt: skip
    text = "\n".join(parts)
    for placeholder, value in {"NAME": name, "HEADER_WORDS": str(HEADER_WORDS)}.items():
        text = text.replace(f"@{placeholder}@", value)
    return text


PREAMBLE = """\
/* @NAME@: made by timetile. */
#include "@NAME@.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call, what, on) \\
  do { \\
    CUresult result_of_call = (call); \\
    if (result_of_call != CUDA_SUCCESS) \\
      return failed(program, (int)result_of_call, what, on); \\
  } while (0)
"""


def failures() -> str:
    """The C function from a code to its text."""
    own = "\n".join(f'    case {code}: return "{text}";' for code, text in OWN_CODES.items())
    return f"""\
const char *@NAME@_error(int code) {{
  const char *name = 0;
  switch (code) {{
    case 0: return "no error";
{own}
  }}
  if (code > 0) cuGetErrorName((CUresult)code, &name);
  return name ? name : "unknown code";
}}
"""


FAILING = """\
static int failed(@NAME@_program *program, int code, const char *what, const char *on) {
  snprintf(program->message, sizeof program->message, "%s %s: %s (%d)", what, on,
           @NAME@_error(code), code);
  return code;
}

const char *@NAME@_message(const @NAME@_program *program) {
  return program ? program->message : @NAME@_error(-2);
}

int @NAME@_open(int gpu) {
  CUdevice device;
  CUcontext context;
  CUresult code = cuInit(0);
  if (code == CUDA_SUCCESS) code = cuDeviceGet(&device, gpu);
  if (code == CUDA_SUCCESS) code = cuDevicePrimaryCtxRetain(&context, device);
  if (code == CUDA_SUCCESS) code = cuCtxSetCurrent(context);
  return (int)code;
}
"""

LOADING = """\
static size_t message_bytes(const kernel_facts *kernel, unsigned tiles) {
  return 8 * ((size_t)@HEADER_WORDS@ + (size_t)tiles * kernel->message_words);
}

static CUresult prepare(@NAME@_program *program, int k) {
  const kernel_facts *kernel = &facts[k];
  CUfunction function = program->functions[k];
  CUresult code = CUDA_SUCCESS;
  CUdevice device;
  int each, multiprocessors;
  unsigned all, held;
  if (kernel->shared_bytes > 48 * 1024)
    code = cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              (int)kernel->shared_bytes);
  if (code != CUDA_SUCCESS || kernel->blocks_per_tile == 1) return code;
  code = cuCtxGetDevice(&device);
  if (code == CUDA_SUCCESS)
    code = cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  if (code == CUDA_SUCCESS)
    code = cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, (int)kernel->block,
                                                       kernel->shared_bytes);
  if (code != CUDA_SUCCESS) return code;
  all = kernel->grid / kernel->blocks_per_tile;
  held = (unsigned)(each * multiprocessors) / kernel->blocks_per_tile;
  program->tiles[k] = held < all ? held : all;
  if (program->tiles[k] == 0) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return cuMemAlloc(&program->messages[k], message_bytes(kernel, program->tiles[k]));
}

/* Machine code if it suits the GPU, otherwise PTX, which the driver assembles. */
static int load_kernel(@NAME@_program *program, int k, const char *folder) {
  const kernel_facts *kernel = &facts[k];
  char path[4096], what[256];
  CUresult code = CUDA_ERROR_FILE_NOT_FOUND;
  int length = snprintf(path, sizeof path, "%s/%s.cubin", folder, kernel->file);
  if (length < 0 || (size_t)length >= sizeof path)
    return failed(program, -4, "loading the kernels from", folder);
  if (kernel->has_cubin) code = cuModuleLoad(&program->modules[k], path);
  if (code != CUDA_SUCCESS) {
    snprintf(path, sizeof path, "%s/%s.ptx", folder, kernel->file);
    code = cuModuleLoad(&program->modules[k], path);
  }
  snprintf(what, sizeof what, "loading kernel %s from", kernel->name);
  TRY(code, what, path);
  TRY(cuModuleGetFunction(&program->functions[k], program->modules[k], kernel->name), what, path);
  TRY(prepare(program, k), "preparing kernel", kernel->name);
  return 0;
}

int @NAME@_load(@NAME@_program **made, const char *folder) {
  int k, code = 0;
  @NAME@_program *program = (@NAME@_program *)calloc(1, sizeof *program);
  *made = program;
  if (program == 0) return -2;
  for (k = 0; k < FIELDS; k++) program->next[k] = k;
  for (k = 0; k < KERNELS && code == 0; k++) code = load_kernel(program, k, folder);
  return code;
}

void @NAME@_unload(@NAME@_program *program) {
  int k;
  if (program == 0) return;
  for (k = 0; k < SCRATCH; k++) if (program->scratch[k]) cuMemFree(program->scratch[k]);
  for (k = 0; k < FIELDS; k++) if (program->copies[k]) cuMemFree(program->copies[k]);
  for (k = 0; k < KERNELS; k++) {
    if (program->messages[k]) cuMemFree(program->messages[k]);
    if (program->modules[k]) cuModuleUnload(program->modules[k]);
  }
  free(program);
}
"""

LAUNCHING = """\
/* `parameters` ends in three zeros: kernels whose blocks wait take words and the tiles. */
static int launch(@NAME@_program *program, int k, void **parameters, int count, CUstream stream) {
  const kernel_facts *kernel = &facts[k];
  int32_t tiles = (int32_t)program->tiles[k];
  if (kernel->blocks_per_tile == 1) {
    TRY(cuLaunchKernel(program->functions[k], kernel->grid, 1, 1, kernel->block, 1, 1,
                       kernel->shared_bytes, stream, parameters, 0),
        "launching kernel", kernel->name);
    return 0;
  }
  parameters[count] = &program->messages[k];
  parameters[count + 1] = &tiles;
  TRY(cuMemsetD8Async(program->messages[k], 0, message_bytes(kernel, program->tiles[k]), stream),
      "clearing messages of kernel", kernel->name);
  TRY(cuLaunchCooperativeKernel(program->functions[k],
                                program->tiles[k] * kernel->blocks_per_tile, 1, 1, kernel->block,
                                1, 1, kernel->shared_bytes, stream, parameters),
      "launching kernel", kernel->name);
  return 0;
}

static int take_scratch(@NAME@_program *program, int first, int count) {
  int k;
  for (k = first; k < first + count; k++)
    if (program->scratch[k] == 0)
      TRY(cuMemAlloc(&program->scratch[k], scratch_bytes[k]), "taking", "scratch memory");
  return 0;
}

static size_t bytes_of(int buffer) {
  return buffer < FIELDS ? field_bytes[buffer] : scratch_bytes[buffer - FIELDS];
}
"""

RUNNING = """\
/* `value` has the buffer of each value, `buffer` the address of each buffer. */
static int run_loop(@NAME@_program *program, const loop_row *loop, int steps, int *value,
                    CUdeviceptr *buffer, const void *const *numbers, CUstream stream) {
  int place[PLACES + 1], k, at, turn, more = 0, own = loop->is_fixed ? 0 : steps;
  const plan_row *plan;
  if (own >= loop->count) {
    own = loop->count - loop->period + (steps - loop->count) % loop->period;
    more = steps - own;
  }
  plan = &plan_rows[loop->plans + own];
  if (more > 0) more = plan->turn ? more / plan->turn : 0;
  k = take_scratch(program, OWN_SCRATCH, plan->scratch);
  if (k) return k;
  for (k = 0; k < loop->scratch; k++) {
    place[loop->carried + k] = FIELDS + OWN_SCRATCH + k;
    buffer[FIELDS + OWN_SCRATCH + k] = program->scratch[OWN_SCRATCH + k];
  }
  for (k = 0; k < loop->carried; k++) place[k] = value[integers[loop->buffers + k]];
  for (k = 0; k < loop->captured; k++)
    place[loop->carried + loop->scratch + k] = value[integers[loop->captures + k]];
  for (k = 0; k < plan->copied; k += 2) {
    int from = place[integers[plan->copies + k]], to = place[integers[plan->copies + k + 1]];
    TRY(cuMemcpyDtoDAsync(buffer[to], buffer[from], bytes_of(to), stream), "copying", "a buffer");
  }
  for (at = 0, turn = 1; at < plan->launches; at++) {
    const launch_row *row = &launch_rows[integers[plan->order + at]];
    void *parameters[OPERANDS + 3] = {0};
    for (k = 0; k < row->count; k++) {
      int operand = integers[row->operands + k];
      parameters[k] = operand < 0 ? (void *)numbers[-1 - operand] : (void *)&buffer[place[operand]];
    }
    k = launch(program, row->kernel, parameters, row->count, stream);
    if (k) return k;
    if (at + 1 == plan->first + plan->length && turn < plan->repeats + more) {
      turn++;
      at = plan->first - 1;
    }
  }
  for (k = 0; k < loop->carried; k++)
    value[loop->results + k] = place[integers[plan->left + k]];
  return 0;
}

/* Keep the fields of the last step's results, and of the next call if their order is one. */
static void keep_results(@NAME@_program *program, const int *value) {
  int k, taken[FIELDS + 1] = {0};
  for (k = 0; k < LATEST; k++) program->latest[k] = value[latest_values[k]];
  for (k = 0; k < FIELDS; k++) program->next[k] = k;
  for (k = 0; k < NEXT; k++) {
    int from = value[next_values[2 * k + 1]];
    if (from < FIELDS) program->next[next_values[2 * k]] = from;
  }
  for (k = 0; k < FIELDS; k++) taken[program->next[k]]++;
  for (k = 0; k < FIELDS; k++) if (taken[k] != 1) break;
  if (k < FIELDS) for (k = 0; k < FIELDS; k++) program->next[k] = k;
}

int @NAME@_latest(const @NAME@_program *program, int k) {
  return k >= 0 && k < LATEST ? program->latest[k] : -1;
}
"""


def run_text(plan: BundlePlan, numbers: str, addresses: str) -> str:
    """The C functions that run steps on device memory."""
    fields = [member for _, member in named_arguments(plan, "field")]
    buffers = "\n".join(f"  buffer[{k}] = arguments->{each};" for k, each in enumerate(fields))
    order = "\n".join(
        f"  arguments->{each} = before[program->next[{k}]];" for k, each in enumerate(fields)
    )
    before = "\n".join(f"  before[{k}] = arguments->{each};" for k, each in enumerate(fields))
    return f"""\
int @NAME@_run(@NAME@_program *program, const @NAME@_arguments *arguments, int steps,
  CUstream stream) {{
{numbers}
  const void *const numbers[NUMBERS + 1] = {{{addresses}}};
  CUdeviceptr buffer[FIELDS + SCRATCH + 1];
  int value[VALUES + 1], k, code;
{buffers}
  (void)arguments;
  if (steps < 0) return failed(program, -1, "running", "@NAME@");
  for (k = 0; k < FIELDS; k++)
    if (buffer[k] == 0 || buffer[k] % 16) return failed(program, -3, "field", field_names[k]);
  code = take_scratch(program, 0, OWN_SCRATCH);
  if (code) return code;
  for (k = 0; k < OWN_SCRATCH; k++) buffer[FIELDS + k] = program->scratch[k];
  for (k = 0; k < FIELDS + OWN_SCRATCH; k++) value[k] = k;
  for (k = 0; k < LOOPS; k++) {{
    code = run_loop(program, &loop_rows[k], steps, value, buffer, numbers, stream);
    if (code) return code;
  }}
  keep_results(program, value);
  return 0;
}}

int @NAME@_advance(@NAME@_program *program, @NAME@_arguments *arguments, int steps,
  CUstream stream) {{
  CUdeviceptr before[FIELDS + 1];
  int code = @NAME@_run(program, arguments, steps, stream);
  if (code) return code;
{before}
{order}
  (void)before;
  return 0;
}}
"""


def arrays_text(plan: BundlePlan) -> str:
    """The C function that advances arrays of the host."""
    fields = [member for _, member in named_arguments(plan, "field")]
    scalars = [member for _, member in named_arguments(plan, "scalar")]
    hosts = ", ".join([*(f"arrays->{each}" for each in fields), "0"])
    members = [f"  arguments.{each} = program->copies[{k}];" for k, each in enumerate(fields)]
    members += [f"  arguments.{each} = arrays->{each};" for each in scalars]
    settings = "\n".join(members or ["  arguments.nothing = 0;"])
    return f"""\
int @NAME@_advance_arrays(@NAME@_program *program, const @NAME@_arrays *arrays, int steps) {{
  void *const host[FIELDS + 1] = {{{hosts}}};
  @NAME@_arguments arguments;
  int k, code;
  (void)arrays;
  for (k = 0; k < FIELDS; k++) {{
    if (host[k] == 0) return failed(program, -3, "field", field_names[k]);
    if (program->copies[k] == 0)
      TRY(cuMemAlloc(&program->copies[k], field_bytes[k]), "taking memory of field",
          field_names[k]);
    TRY(cuMemcpyHtoD(program->copies[k], host[k], field_bytes[k]), "copying to the GPU field",
        field_names[k]);
  }}
{settings}
  code = @NAME@_run(program, &arguments, steps, 0);
  if (code) return code;
  TRY(cuStreamSynchronize(0), "running", "@NAME@");
  for (k = 0; k < FIELDS; k++)
    TRY(cuMemcpyDtoH(host[k], program->copies[program->next[k]], field_bytes[k]),
        "copying from the GPU field", field_names[k]);
  return 0;
}}
"""
