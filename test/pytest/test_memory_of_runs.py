"""A run on the processor, and the comparison of two runs, take little memory beside the arrays."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEASURED = """
import resource, sys
import numpy as np
import timetile
from timetile.runtime.program.comparison import difference

executor, threads = sys.argv[1], [int(word) for word in sys.argv[2:]]
side, planes = 256, 64
shape = f"[-1,{planes + 1}]x[-1,{side + 1}]x[-1,{side + 1}]xf64"
text = f'''
func.func @heat(%A: !stencil.field<{shape}>, %B: !stencil.field<{shape}>, %n: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%a = %A, %b = %B)
      -> (!stencil.field<{shape}>, !stencil.field<{shape}>) {{
    %in = stencil.load %a : !stencil.field<{shape}> -> !stencil.temp<?x?x?xf64>
    %out = stencil.apply(%x = %in : !stencil.temp<?x?x?xf64>) -> (!stencil.temp<?x?x?xf64>) {{
      %l = stencil.access %x[-1, 0, 0] : !stencil.temp<?x?x?xf64>
      %r = stencil.access %x[0, 0, 1] : !stencil.temp<?x?x?xf64>
      %s = arith.addf %l, %r : f64
      stencil.return %s : f64
    }}
    stencil.store %out to %b(<[0, 0, 0], [{planes}, {side}, {side}]>)
      : !stencil.temp<?x?x?xf64> to !stencil.field<{shape}>
    scf.yield %b, %a : !stencil.field<{shape}>, !stencil.field<{shape}>
  }}
  func.return
}}
'''
sides = (planes + 2, side + 2, side + 2)
fields = [np.full(sides, 0.5), np.full(sides, 0.5)]
held = sum(field.nbytes for field in fields)
options = {"executor": executor, "halos": "apart", "cache": False}
programs = [timetile.compile(text, threads=count, **options) for count in threads]
for compiled in programs:
    compiled(*fields, 0)

def most() -> int:
    # Linux counts kibibytes, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

before = most()
assert before > held
for compiled in programs:
    compiled(*fields, 5)
assert difference(*fields) is not None
print((most() - before) / held)
"""


@pytest.mark.parametrize(("executor", "threads"), [("cpu", ["1", "2"]), ("numpy", ["1"])])
def test_a_run_takes_a_tenth_of_its_arrays_at_most(executor: str, threads: list[str]):
    """
    Peak memory of a process after runs of five steps on numbers of threads; two arrays of 35 MB
    exist before the runs.
    """
    command = [sys.executable, "-c", MEASURED, executor, *threads]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.1
