"""Programs with one cell operation an update, on fields of the operands' types."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from support.cell_operations import Case


def stored(kind: Attribute) -> str:
    """The element type of a field for values of a type: fields hold no index and no boolean."""
    if isinstance(kind, IndexType):
        return "i64"
    return "i32" if str(kind) == "i1" else str(kind)


def given(name: str, kind: Attribute) -> tuple[str, str]:
    """The value for a field's cell: the name, and the line that defines the value."""
    if isinstance(kind, IndexType):
        return f"%{name}v", f"      %{name}v = arith.index_cast %{name} : i64 to index"
    if str(kind) == "i1":
        return f"%{name}v", f"      %{name}v = arith.cmpi ne, %{name}, %zero : i32"
    return f"%{name}", ""


def result_line(case: Case, values: Sequence[str]) -> str:
    """The operation, and a cast of results without a field type."""
    kinds = ", ".join(map(str, case.operands))
    made = (
        f'      %made = "{case.operation.name}"({", ".join(values)}){case.properties} : ({kinds}) '
        f"-> {case.result}"
    )
    if isinstance(case.result, IndexType):
        return made + "\n      %r = arith.index_cast %made : index to i64"
    if str(case.result) == "i1":
        return made + "\n      %r = arith.extui %made : i1 to i32"
    return made + f"\n      %r = arith.select %yes, %made, %made : {case.result}"


def program_of(group: Sequence[Case], cells: int) -> str:
    """A step with the operations of one signature, on common fields."""
    kinds = [stored(kind) for kind in group[0].operands]
    bounds = f"[0,{cells}]"
    fields = [f"%f{k}: !stencil.field<{bounds}x{e}>" for k, e in enumerate(kinds)]
    fields += [f"%o{k}: !stencil.field<{bounds}x{stored(c.result)}>" for k, c in enumerate(group)]
    loads = "\n".join(
        f"    %x{k} = stencil.load %f{k} : !stencil.field<{bounds}x{e}> -> !stencil.temp<?x{e}>"
        for k, e in enumerate(kinds)
    )
    operands = ", ".join(f"%p{k} = %x{k} : !stencil.temp<?x{e}>" for k, e in enumerate(kinds))
    updates: list[str] = []
    for k, case in enumerate(group):
        out = stored(case.result)
        lines = ["      %zero = arith.constant 0 : i32", "      %yes = arith.constant true"]
        lines += [
            f"      %a{n} = stencil.access %p{n}[0] : !stencil.temp<?x{e}>"
            for n, e in enumerate(kinds)
        ]
        values = [given(f"a{n}", kind) for n, kind in enumerate(case.operands)]
        lines += [line for _, line in values if line]
        body = "\n".join([*lines, result_line(case, [value for value, _ in values])])
        updates.append(f"""    %y{k} = stencil.apply({operands}) -> (!stencil.temp<?x{out}>) {{
{body}
      stencil.return %r : {out}
    }}
    stencil.store %y{k} to %o{k}(<[0], [{cells}]>)
      : !stencil.temp<?x{out}> to !stencil.field<{bounds}x{out}>""")
    return f"""func.func @cells({", ".join(fields)}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {{
{loads}
{chr(10).join(updates)}
  }}
  func.return
}}"""
