"""Makes the tables and plots of performance.md from the measurements in benchmarks/results/.

python docs/make_performance.py

The README's first figure is of the same rows as the table of the choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from ceilings import ceilings_section
from choice_table import choice_section, first_figure
from matplotlib import rcParams
from matplotlib.figure import Figure
from programs_table import programs_section
from tables import TYPES, Row, number, table
from targets import targets_section
from types_table import stored_section

from timetile.passes.targets.target import target_named

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PAGE = DOCS / "performance.md"
README = DOCS.parent / "README.md"
# The same measurements make the same files.
rcParams["svg.hashsalt"] = "timetile"

SM_90 = target_named("sm_90")
COLUMNS = (
    "stencil", "type", "domain", "depth", "GCells/s", "peak", "1000 steps", "model", "FMA bound",
    "share", "copied", "best peer", "ratio", "registers", "spilled", "warps",
)  # fmt: skip

SEARCHED = (
    "stencil",
    "type",
    "domain",
    "schedules",
    "chosen depth",
    "GCells/s",
    "best depth",
    "GCells/s",
    "share",
)
COMPARED = ("stencil", "type", "depth", "schedule", "GCells/s", "model", "registers", "spilled")
TILES = ("stencil", "type", "domain", "depth", "tile", "GCells/s", "registers", "spilled", "commit")

ON_CPU = (
    "program",
    "type",
    "domain",
    "threads",
    "MCells/s",
    "single steps",
    "gcc",
    "NumPy",
    "of NumPy",
    "of gcc",
    "of single steps",
    "memory",
    "load",
)


def rows_of(name: str) -> list[Row]:
    """The rows of one complete file of measurements."""
    path = RESULTS / name
    rows: list[Row] = json.loads(path.read_text()) if path.exists() else []
    return [row for row in rows if "error" not in row]


def cells_of(row: Row) -> Iterator[str]:
    """One row of the table."""
    speed, bound = row["gcells_per_s"], row["fma_bound"]
    # The peers' figures are for domains large enough to fill the device.
    peer = row["best_peer"] if prod(row["domain"]) >= 1e7 else None
    yield row["stencil"]
    yield TYPES[row["dtype"]]
    yield " x ".join(map(str, row["domain"]))
    yield str(row["depth"])
    yield number(speed)
    yield number(row["gcells_per_s_peak"])
    yield number(row.get("gcells_per_s_1000_steps"))
    yield number(row["gcells_per_s_predicted"])
    yield number(bound)
    yield f"{100 * speed / bound:.0f}%"
    yield f"{100 * speed / row['copy_bound'] / row['depth']:.0f}%"
    yield "" if peer is None else f"{peer[0]:.0f} ({peer[1]})"
    yield "" if peer is None else number(speed / peer[0], 2)
    yield str(row["registers"])
    yield f"{row['spill_bytes']} B" if row["spill_bytes"] else ""
    yield str(row["warps_per_multiprocessor"])


def searched_cells(row: Row) -> tuple[str, ...]:
    """The chosen schedule, and the best of all candidates."""
    chosen, best = row["chosen"], row["best"]
    return (
        row["stencil"],
        TYPES[row["dtype"]],
        " x ".join(map(str, row["domain"])),
        str(row["schedules"]),
        str(chosen["depth"]),
        number(chosen["gcells_per_s"]),
        str(best["depth"]),
        number(best["gcells_per_s"]),
        f"{100 * row['share_of_best']:.0f}%",
    )


def compared_cells(row: Row) -> tuple[str, ...]:
    """A schedule beside the default schedule, the first row of every stencil."""
    changes = ", ".join(f"{name} {value}" for name, value in row["changes"].items())
    return (
        row["stencil"],
        TYPES[row["dtype"]],
        str(row["depth"]),
        changes or "default",
        number(row["gcells_per_s"]),
        number(row["gcells_per_s_predicted"]),
        str(row["registers"]),
        f"{row['spill_bytes']} B" if row["spill_bytes"] else "",
    )


def tile_cells(row: Row) -> tuple[str, ...]:
    """A schedule with a tile of the device, or the default schedule beside."""
    changes, axes = row["changes"], ("cells", "warps", "blocks")
    shape = [f"{' x '.join(map(str, changes[axis]))} {axis}" for axis in axes if axis in changes]
    late = [f"delay {changes['delay']}"] if "delay" in changes else []
    resident = ["resident"] if changes.get("stream") == "none" else []
    resident += ["planes in shared memory"] if changes.get("storage") == "shared" else []
    if changes.get("sync") == "grid":
        every = changes.get("every", 1)
        late += ["barriers of the grid"] if every == 1 else [f"one of the grid in {every} steps"]
    late += ["sums in halves"] if changes.get("form") == "halves" else []
    return (
        row["stencil"],
        TYPES[row["dtype"]],
        " x ".join(map(str, row["domain"])),
        str(row["depth"]),
        ", ".join([*shape, *resident, *late]) or "default",
        number(row["gcells_per_s"]),
        str(row["registers"]),
        f"{row['spill_bytes']} B" if row["spill_bytes"] else "",
        row["commit"],
    )


def cpu_cells(row: Row) -> tuple[str, ...]:
    """A program on the processor, beside NumPy, gcc, and steps with passes over whole fields."""
    speed = row["mcells_per_s"]
    ratios = (
        number(speed / row[f"{other}_mcells_per_s"], 2)
        for other in ("numpy", "gcc", "single_steps")
    )
    return (
        row["program"],
        TYPES[row["dtype"]],
        " x ".join(map(str, row["domain"])),
        str(row["threads"]),
        *(number(row[f"{other}mcells_per_s"]) for other in ("", "single_steps_", "gcc_", "numpy_")),
        *ratios,
        number(row["peak_bytes"] / row["array_bytes"], 3),
        str(row["load_average"]),
    )


def cpu_section(rows: list[Row]) -> str:
    """The table of the processor, with machine, versions and way of measuring."""
    first = rows[0]
    # gcc's version begins with the name.
    versions = ", ".join(
        f"{name} {version.removeprefix(f'{name} ')}" for name, version in first["versions"].items()
    )
    facts = f"{first['machine']}; {versions}; commit {first['commit']}:"
    command = f"```console\n$ {first['command']}\n```"
    return f"{facts}\n\n{command}\n\n{table(ON_CPU, map(cpu_cells, rows))}"


EXAMPLES = (
    "example", "type", "cells", "GPU", "steps a launch", "model", "copy bound", "processor",
)  # fmt: skip


def example_cells(row: Row) -> tuple[str, ...]:
    """An example in Python on the GPU and on the processor, beside the model and a copy."""
    return (
        row["example"],
        {"float32": "FP32", "float64": "FP64"}[row["dtype"]],
        " x ".join(map(str, row["domain"])),
        number(row["gpu_gcells_per_s"], 1),
        str(row["steps_a_launch"]),
        number(row["predicted_gcells_per_s"], 1),
        number(row["copy_gcells_per_s"], 1),
        number(row["cpu_gcells_per_s"], 2),
    )


def examples_section(report: dict[str, Any]) -> str:
    """The table of the examples in Python, with machine and way of measuring."""
    facts = (
        f"{report['device']}, which copies {report['copy_tb_per_s']:.2f} TB/s, and "
        f"{report['processor_threads']} threads of its host; NumPy {report['numpy']}; commit "
        f"{report['commit']}:"
    )
    command = f"```console\n$ {report['command']}\n```"
    made = table(EXAMPLES, map(example_cells, report["rows"]))
    return f"{facts}\n\n{command}\n\n{made}"


PROFILES = ("type", "cells", "axes", "profile", "steps a launch", "field", "steps a launch")


def profile_cells(row: Row) -> tuple[str, ...]:
    """A coefficient of fewer axes beside a field of all axes."""
    return (
        {"float32": "FP32", "float64": "FP64"}[row["dtype"]],
        " x ".join(map(str, row["domain"])),
        ", ".join(map(str, row["axes"])),
        number(row["profile_gcells_per_s"]),
        str(row["profile_steps_a_launch"]),
        number(row["field_gcells_per_s"]),
        str(row["field_steps_a_launch"]),
    )


def profiles_section(report: dict[str, Any]) -> str:
    """The table of coefficients of fewer axes, with machine and way of measuring."""
    facts = (
        f"{report['device']}, which copies {report['copy_tb_per_s']:.2f} TB/s; NumPy "
        f"{report['numpy']}; commit {report['commit']}:"
    )
    command = f"```console\n$ {report['command']}\n```"
    made = table(PROFILES, map(profile_cells, report["rows"]))
    return f"{facts}\n\n{command}\n\n{made}"


def replace(text: str, name: str, made: str) -> str:
    """The page with new text between a pair of marks."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = text.split(start)
    _, after = rest.split(end)
    return f"{before}{start}{made}\n{end}{after}"


def roofline(rows: list[Row], path: Path) -> None:
    """
    Speed over arithmetic intensity (operations for each byte of necessary traffic), with both
    ceilings.
    """
    # Of matplotlib's types many parts are unknown: Any.
    figure: Any = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.add_subplot()
    for kind, marker in (("f64", "o"), ("f32", "^")):
        bounded = [row for row in rows if row["dtype"] == kind and row["fma_bound"]]
        if not bounded:
            continue
        # Operations per second and per byte, from the two bounds of a row.
        peak = max(operations(row) * row["fma_bound"] for row in bounded)
        copy = bounded[0]["copy_tb_per_s"] * 1e3
        xs = [intensity(row) for row in bounded]
        ys = [row["gcells_per_s"] * operations(row) for row in bounded]
        (points,) = axes.plot(xs, ys, marker, label=TYPES[kind])
        span = [0.1, peak / copy, 200]
        axes.plot(span, [min(peak, copy * x) for x in span], color=points.get_color(), alpha=0.6)
        for row, x, y in zip(bounded, xs, ys):
            axes.annotate(f"{row['stencil']} T{row['depth']}", (x, y), fontsize=6)
    axes.set(xscale="log", yscale="log", ylabel="useful operations, 10^9 a second")
    axes.set_xlabel("useful operations for each byte that a launch must move")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def operations(row: Row) -> float:
    """Operations of a cell and step: the pipe's speed over the bound."""
    per_cycle = SM_90.isa.fma_per_cycle[{"f64": 8, "f32": 4}[row["dtype"]]]
    return round(per_cycle * SM_90.multiprocessors * SM_90.part.clock_ghz / row["fma_bound"])


def intensity(row: Row) -> float:
    """Operations of a launch for each byte of the launch's fields, read or written once."""
    bytes_of_step = 1e3 * SM_90.part.copy_tb_per_s / row["copy_bound"]
    return operations(row) * row["depth"] / bytes_of_step


def growth(report: dict[str, Any], path: Path) -> None:
    """Time over cells, and over steps, beside a copy of the fields for every step."""
    rows: list[Row] = report["rows"]
    figure: Any = Figure(figsize=(10, 4.5), layout="constrained")
    # Domains of all shapes run the first row's steps; domains of one shape run several numbers.
    steps = rows[0]["steps"]
    domain = next(row["domain"] for row in rows if row["steps"] != steps)
    runs = sorted((row for row in rows if row["domain"] == domain), key=lambda row: row["steps"])
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    shapes = {tuple(row["domain"]): row for row in rows if row["steps"] == steps}
    alike = [row for sides, row in shapes.items() if len(set(sides)) == 1]
    others = [row for sides, row in shapes.items() if len(set(sides)) > 1]
    xs = [prod(row["domain"]) for row in alike]
    left.plot(xs, [row["milliseconds"] / row["steps"] for row in alike], "o-", label="a step")
    left.plot(xs, [row["copy_milliseconds"] for row in alike], "s--", label="a copy of the field")
    if others:
        xs = [prod(row["domain"]) for row in others]
        times = [row["milliseconds"] / row["steps"] for row in others]
        left.plot(xs, times, "x", label="a step of thin and long domains")
    left.set(xscale="log", yscale="log", xlabel="cells", ylabel="ms")
    left.set_title(f"{steps} steps")
    xs = [row["steps"] for row in runs]
    right.plot(xs, [row["milliseconds"] for row in runs], "o-", label="a run")
    right.plot(
        xs, [row["copy_milliseconds"] * row["steps"] for row in runs], "s--",
        label="a copy of the field for every step",
    )  # fmt: skip
    right.set(xscale="log", yscale="log", xlabel="steps", ylabel="ms")
    right.set_title(f"{' x '.join(map(str, domain))} cells")
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    text = PAGE.read_text()
    flat, solid = rows_of("h200-2d.json"), rows_of("h200-3d.json")
    if not flat or not solid:
        raise SystemExit(f"{RESULTS} lacks h200-2d.json or h200-3d.json; run benchmarks/measure.py")
    text = replace(text, "table 2d", table(COLUMNS, map(cells_of, flat)))
    text = replace(text, "table 3d", table(COLUMNS, map(cells_of, solid)))
    # Measurements still to come have no section.
    if apart := rows_of("h200-apart.json"):
        text = replace(text, "table apart", table(COLUMNS, map(cells_of, apart)))
    if compared := rows_of("h200-ablation.json"):
        text = replace(text, "table ablation", table(COMPARED, map(compared_cells, compared)))
    if tiles := rows_of("h200-tiles.json"):
        text = replace(text, "table tiles", table(TILES, map(tile_cells, tiles)))
    if cpu := rows_of("cpu.json"):
        text = replace(text, "table cpu", cpu_section(cpu))
    examples = RESULTS / "h200-examples.json"
    if examples.exists():
        text = replace(text, "table examples", examples_section(json.loads(examples.read_text())))
    profiles = RESULTS / "h200-profiles.json"
    if profiles.exists():
        text = replace(text, "table profiles", profiles_section(json.loads(profiles.read_text())))
    programs = RESULTS / "real-programs.json"
    if programs.exists():
        report = json.loads(programs.read_text())
        made = targets_section(report["rows"], report["copy_tb_per_s"])
        text = replace(text, "table targets", made)
        text = replace(text, "table programs", programs_section(report["rows"]))
    counted = json.loads((RESULTS / "real-counters-h200.json").read_text())
    text = replace(text, "table ceilings", ceilings_section(counted))
    choice = json.loads((RESULTS / "choice-h200.json").read_text())
    text = replace(text, "table choice", choice_section(choice))
    README.write_text(replace(README.read_text(), "first figure", first_figure(choice)))
    stored = RESULTS / "types.json"
    if stored.exists():
        text = replace(text, "table types", stored_section(json.loads(stored.read_text())))
    for name in ("search", "search-3d"):
        searched = RESULTS / f"h200-{name}.json"
        if searched.exists():
            rows: list[Row] = json.loads(searched.read_text())["rows"]
            text = replace(text, f"table {name}", table(SEARCHED, map(searched_cells, rows)))
    PAGE.write_text(text)
    pictures = DOCS / "pictures"
    pictures.mkdir(exist_ok=True)
    roofline(flat, pictures / "roofline-2d.svg")
    roofline(solid, pictures / "roofline-3d.svg")
    for name, picture in (
        ("h200-growth.json", "growth.svg"),
        ("h200-growth-3d.json", "growth-3d.svg"),
    ):
        if (RESULTS / name).exists():
            growth(json.loads((RESULTS / name).read_text()), pictures / picture)


if __name__ == "__main__":
    main()
