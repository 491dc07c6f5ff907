"""
The rows of the table of systems: programs as in the papers, pipelines by name, and the papers'
figures.

A figure is of the authors' own code, in GCells/s of valid cells, on the card named beside: built
for sm_90 and run on one H100 and one H200, in all of its configurations. The semi-stencil's is the
paper's, for another program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from systems_programs import SSAM_STENCILS, SSAM_VOLUMES, WAVES, text_of

from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.simplify_cells import FpDivision

Domain = tuple[int, ...]
H100, H200, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA A100-PCIE-40GB"
PLATE, LARGE, VOLUME = (8192, 8192), (16384, 16384), (512, 512, 512)
SMALL, CUBE = (600, 600, 600), (900, 900, 900)
STREAMED, AUTHORS_VOLUME = (2560, 288, 384), (96, 352, 384)
"""EBISU's volume in the paper, and in the authors' code on a GPU of 132 multiprocessors."""
SPANNED = (96, 350, 382)
"""A volume that 11 x 12 blocks of 32 x 32 cells span, with a cell of halo on each side."""


@dataclass(frozen=True)
class SystemCase:
    """A program with a pipeline by the name of a system."""

    system: str
    program: str
    dtype: str
    domain: Domain
    pipeline: str
    papers: tuple[tuple[str, float], ...] = ()
    """The authors' figure by card."""
    default_depth: int | None = None
    """The depth of the default, where a program runs a single step."""
    is_main: bool = True
    technique: str = ""
    """The techniques of a paper in the row, of rows that leave some out."""
    fp_division: FpDivision = "exact"
    fp_reassoc: FpReassoc = "flags"

    @property
    def key(self) -> str:
        """The name of the row in options."""
        shape = "x".join(map(str, self.domain))
        fast = "" if self.fp_division == "exact" else ":fast"
        return f"{self.system}:{self.program}:{self.dtype}:{shape}:{self.pipeline}{fast}"

    def text(self, domain: Domain) -> str:
        """The program on a domain."""
        return text_of(self.program, self.dtype, domain)

    def paper(self, device: str) -> tuple[float, str]:
        """The authors' figure on a card, else on another card; 0 without a figure."""
        known = dict(self.papers)
        if device in known:
            return known[device], device
        return next(((speed, card) for card, speed in self.papers), (0.0, ""))


def ebisu_cases() -> list[SystemCase]:
    """Tables 2 and 3 of EBISU: depths of the paper for plates, of the formulas for volumes."""
    plates = [
        ("j2d5pt", "f64", 8352, 12, 733, 733),
        ("j2d5pt", "f64", 10208, 12, 899, 901),
        ("j2d5pt", "f32", 8352, 12, 902, 0),
        ("j2d9pt", "f64", 8064, 8, 433, 433),
        ("j2d9pt-gol", "f64", 8784, 6, 539, 539),
        ("j2d25pt", "f64", 8640, 4, 278, 278),
    ]
    rows = [
        SystemCase(
            "ebisu",
            name,
            dtype,
            (side, side),
            f"ebisu{{depth={depth}}}",
            tuple((card, speed) for card, speed in ((H100, first), (H200, second)) if speed),
        )
        for name, dtype, side, depth, first, second in plates
    ]
    volumes = {"j3d7pt": 239, "j3d13pt": 0, "j3d17pt": 156, "j3d27pt": 138, "poisson": 136}
    for name, speed in volumes.items():
        papers = ((H200, float(speed)),) if speed else ()
        rows.append(SystemCase("ebisu", name, "f64", AUTHORS_VOLUME, "ebisu", papers))
        # The paper's volume; its text has j3d7pt's speed on an A100 alone (section 6.3.2).
        on_a100 = ((A100, 197.0),) if name == "j3d7pt" else ()
        rows.append(SystemCase("ebisu", name, "f64", STREAMED, "ebisu", on_a100))
    rows += [
        SystemCase("ebisu", name, "f64", (side, side), "ebisu", is_main=False)
        for name, _, side, depth, _, _ in plates
        if depth != 12
    ]
    return rows


def ebisu_techniques() -> list[SystemCase]:
    """Figure 9 of EBISU: techniques one by one, and all but one."""
    plate = "device-tiling{{tile=block cells=1 lanes=32 warps=8 occupancy=1}}"
    ring = "multi-queue-buffering{{storage=shared addressing=computed}}"
    fetched = "multi-queue-buffering{{storage=shared addressing=computed ahead=3}}"
    end = "carry-halos,peel-boundaries"
    fused = "temporal-fusion{{depths={}}},"
    steps = [
        ("BASE", f"{fused}{plate},{ring},{end}".format(1)),
        ("CMQ", f"{fused}{plate},{ring},{end}".format(12)),
        ("CMQ PRE, copies in the ring", f"{fused}{plate},{fetched},{end}".format(12)),
        (
            "CMQ RST PRE",
            f"{fused}{plate},{ring},register-streaming{{{{what=plane delay=0}}}},{end}".format(12),
        ),
        ("CMQ RST LST", "ebisu{depth=12 cells=1 ahead=0}"),
        ("CMQ RST LST PRE", "ebisu{depth=12 cells=1}"),
        ("CMQ RST LST PRE, two cells a thread", "ebisu{depth=12 cells=2}"),
    ]
    rows = [
        SystemCase("ebisu", "j2d5pt", "f64", (8352, 8352), pipeline, technique=technique)
        for technique, pipeline in steps
    ]
    volume = "device-tiling{{tile=device cells=4,1 lanes=1,32 warps=8,1 blocks={},1 occupancy=1}}"
    ring = "multi-queue-buffering{{storage=shared addressing=shifting}}"
    steps = [
        ("BASE", f"{fused}{volume},{ring},{end}".format(1, 12)),
        ("CMQ", f"{fused}{volume},{ring},{end}".format(4, 12)),
        ("CMQ RST LST", "ebisu{depth=6 ahead=0 sync=grid}"),
        ("CMQ RST LST PRE", "ebisu{depth=6 sync=grid}"),
        ("CMQ RST LST PRE, messages of edges", "ebisu{depth=6 sync=flags}"),
    ]
    rows += [
        SystemCase("ebisu", "j3d7pt", "f64", AUTHORS_VOLUME, pipeline, technique=technique)
        for technique, pipeline in steps
    ]
    return rows


AN5D_H200 = {
    "j2d5pt-divided": (1571, 446),
    "j2d9pt-divided": (895, 323),
    "j2d9pt-gol-divided": (884, 165),
    "gradient2d": (1059, 343),
    "star2d1r": (1598, 751),
    "star2d2r": (906, 324),
    "star2d3r": (623, 247),
    "star2d4r": (490, 213),
    "box2d1r": (898, 410),
    "box2d2r": (492, 213),
    "box2d3r": (297, 148),
    "box2d4r": (215, 101),
    "star3d1r": (491, 217),
    "star3d2r": (271, 126),
    "star3d3r": (201, 102),
    "star3d4r": (178, 90),
    "box3d1r": (291, 132),
    "box3d2r": (91, 41),
    "box3d3r": (27, 12),
    "box3d4r": (20, 7),
    "j3d27pt-divided": (290, 84),
}
"""AN5D's own code on one H200, in FP32 and FP64."""

AN5D_H100 = {
    ("star2d1r", "f64"): 724,
    ("star2d1r", "f32"): 1538,
    ("j2d5pt-divided", "f64"): 341,
    ("j2d5pt-divided", "f32"): 1511,
    ("gradient2d", "f64"): 257,
    ("gradient2d", "f32"): 1038,
    ("star2d3r", "f64"): 241,
    ("star3d2r", "f64"): 108,
    ("star3d3r", "f64"): 93,
    ("star3d4r", "f64"): 85,
    ("box2d3r", "f64"): 157,
    ("box2d3r", "f32"): 281,
    ("box3d2r", "f64"): 30,
    ("box3d2r", "f32"): 75,
    ("box3d1r", "f32"): 285,
}
"""AN5D's own code on one H100."""


def an5d_cases() -> list[SystemCase]:
    """
    AN5D's 21 programs, in both types. The authors' figures in FP32 are with approximate quotients
    and roots: the rows with a quotient or a root are in both ways.
    """
    rows: list[SystemCase] = []
    for name, speeds in AN5D_H200.items():
        rank = 3 if "3d" in name else 2
        for dtype, speed in zip(("f32", "f64"), speeds):
            beside = AN5D_H100.get((name, dtype))
            known = ((H200, float(speed)),)
            papers = known if beside is None else ((H100, float(beside)), *known)
            domain = LARGE if rank == 2 else VOLUME
            row = SystemCase("an5d", name, dtype, domain, "an5d", papers)
            rows.append(row)
            if dtype == "f32" and (name.endswith("-divided") or name == "gradient2d"):
                rows.append(replace(row, fp_division="fast"))
    return rows


SSAM_H200 = {
    (3, "f32"): 469,
    (5, "f32"): 332,
    (7, "f32"): 201,
    (9, "f32"): 137,
    (13, "f32"): 64,
    (20, "f32"): 20,
    (3, "f64"): 256,
    (9, "f64"): 91,
    (13, "f64"): 37,
    (20, "f64"): 12,
}
"""SSAM's own convolutions on one H200, by the side of the filter."""


def ssam_cases() -> list[SystemCase]:
    """Convolutions, which run one step, and a stencil in several steps."""
    rows = [
        SystemCase(
            "ssam",
            f"conv{side}x{side}",
            dtype,
            PLATE,
            "ssam",
            ((H200, float(speed)),),
            default_depth=1,
        )
        for (side, dtype), speed in SSAM_H200.items()
    ]
    rows += [
        SystemCase("ssam", name, "f32", PLATE, "ssam", default_depth=1) for name in SSAM_STENCILS
    ]
    rows += [
        SystemCase("ssam", name, dtype, VOLUME, "ssam", default_depth=1)
        for name in SSAM_VOLUMES
        for dtype in ("f32", "f64")
    ]
    for dtype, speed in (("f64", 773.0), ("f32", 1470.0)):
        papers = ((H200, speed),)
        rows.append(SystemCase("ssam", "j2d5pt-columns", dtype, PLATE, "ssam{depth=6}", papers))
    return rows


def stencilgen_cases() -> list[SystemCase]:
    """EBISU's nine programs, with the depths of its table 3 for STENCILGEN."""
    plates = {"j2d5pt": 4, "j2d9pt": 4, "j2d9pt-gol": 4, "j2d25pt": 2}
    volumes = {"j3d7pt": 4, "j3d13pt": 2, "j3d17pt": 2, "j3d27pt": 2, "poisson": 4}
    # STENCILGEN's own figure on the domains of DTB.
    papers = {"j2d5pt": ((H200, 416.0),)}
    return [
        SystemCase(
            "stencilgen", name, "f64", domain, f"stencilgen{{depth={depth}}}", papers.get(name, ())
        )
        for depths, domain in ((plates, PLATE), (volumes, VOLUME))
        for name, depth in depths.items()
    ]


BY_HAND = "sizes by hand"
"""The technique of a row with other sizes than the formulas'."""


def cases_by_hand(cases: list[SystemCase]) -> list[SystemCase]:
    """Rows whose formulas give slow sizes, with faster sizes by options."""
    sizes = {
        ("an5d", "j2d5pt-divided", "f32"): "an5d{depth=6 cells=4 warps=4}",
    }
    found = [
        replace(case, pipeline=sizes[key], technique=BY_HAND)
        for case in cases
        if (key := (case.system, case.program, case.dtype)) in sizes and case.fp_division == "exact"
    ]
    buffered = next(
        case
        for case in cases
        if (case.system, case.program, case.dtype) == ("an5d", "star3d1r", "f32")
    )
    one_buffer = "two planes for all levels"
    found.append(replace(buffered, pipeline="an5d{ring=shared}", technique=one_buffer))
    square = next(case for case in cases if case.system == "dtb" and case.domain == PLATE)
    found += [
        replace(square, pipeline="dtb{cells=6,4 sync=grid}", technique=BY_HAND),
        replace(square, pipeline="dtb{sync=grid}", technique="the barrier of the grid"),
        replace(square, pipeline="dtb{storage=shared}", technique="planes in shared memory"),
        replace(square, pipeline="dtb{blocks=12,11}", technique="blocks along both axes"),
    ]
    plate = next(case for case in cases if case.key.startswith("ebisu:j2d5pt:f64:8352x8352:"))
    volume = next(case for case in cases if case.key.startswith("ebisu:j3d7pt:f64:96x352x384:"))
    found += [
        replace(plate, pipeline="ebisu{depth=12 ring=shared}", technique="one ring for all levels"),
        replace(plate, pipeline="ebisu{depth=6 every=4}", technique="a barrier in four steps"),
        replace(plate, pipeline="ebisu{depth=12 loads=copies}", technique="copies for all readers"),
        replace(
            plate,
            pipeline="ebisu{depth=12 loads=copies ring=shared}",
            technique="copies in one ring for all levels",
        ),
    ]
    wave = next(case for case in cases if case.key.startswith("semi-stencil:wave25pt:f32:600x"))
    found.append(replace(wave, pipeline="semi-stencil{ahead=2}", technique="planes fetched early"))
    found += [
        replace(
            volume,
            domain=SPANNED,
            papers=(),
            pipeline=f"ebisu{{{sizes} cells=4,1 warps=8,1 blocks=11,12}}",
            technique="blocks along both axes",
        )
        for sizes in ("depth=6", "depth=8 sync=grid")
    ]
    return found


def system_cases() -> list[SystemCase]:
    """All rows."""
    # On a par with AN5D there, says the paper.
    on_a_par = ((H200, 446.0),)
    dtb = [
        SystemCase("dtb", "j2d5pt", "f64", domain, "dtb", on_a_par)
        for domain in ((8592, 8328), PLATE)
    ]
    semi = [
        SystemCase("semi-stencil", name, dtype, domain, "semi-stencil")
        for name, domain in (("star3d4r", VOLUME), ("wave25pt", SMALL), ("wave25pt", CUBE))
        for dtype in ("f32", "f64")
    ]
    semi += [
        SystemCase("semi-stencil", name, dtype, domain, "semi-stencil")
        for name, domain, dtype in product(WAVES, (SMALL, CUBE), ("f32", "f64"))
    ]
    cases = [*ebisu_cases(), *ebisu_techniques(), *an5d_cases(), *ssam_cases(), *dtb, *semi]
    cases += stencilgen_cases()
    return [*cases, *cases_by_hand(cases)]
