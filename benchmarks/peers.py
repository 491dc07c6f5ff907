"""
The best figures of published systems, with each system's own code, on one H200 (GCells/s).

Each system was built for sm_90 and ran in all of its configurations; the best figure is kept.
AN5D's FP32 figure for the gradient is with fast arithmetic; in FP64 AN5D's quotients and roots are
rounded.
"""

from __future__ import annotations

PEERS: dict[tuple[str, str], tuple[float, str]] = {
    ("j1d3pt", "f64"): (667, "LoRAStencil"),
    **dict.fromkeys([("j2d5pt", "f64"), ("j2d5pt-centre", "f64")], (901, "EBISU")),
    **dict.fromkeys([("j2d5pt", "f32"), ("j2d5pt-centre", "f32")], (1598, "AN5D")),
    ("j2d9pt", "f64"): (532, "EBISU"),
    ("j2d9pt", "f32"): (906, "AN5D"),
    ("star2d3r", "f64"): (247, "AN5D"),
    ("star2d3r", "f32"): (623, "AN5D"),
    ("star2d4r", "f64"): (213, "AN5D"),
    ("star2d4r", "f32"): (490, "AN5D"),
    ("j2d9pt-gol", "f64"): (698, "EBISU"),
    ("j2d9pt-gol", "f32"): (1053, "EBISU"),
    ("j2d25pt", "f64"): (341, "EBISU"),
    ("j2d25pt", "f32"): (545, "EBISU"),
    ("box2d3r", "f64"): (148, "AN5D"),
    ("box2d3r", "f32"): (297, "AN5D"),
    ("box2d4r", "f64"): (112, "SSAM"),
    ("box2d4r", "f32"): (215, "AN5D"),
    **dict.fromkeys([("gradient2d", "f64"), ("gradient2d-fast", "f64")], (343, "AN5D")),
    **dict.fromkeys([("gradient2d", "f32"), ("gradient2d-fast", "f32")], (1059, "AN5D")),
    **dict.fromkeys([("j3d7pt", "f64"), ("j3d7pt-centre", "f64")], (305, "SSAM")),
    **dict.fromkeys([("j3d7pt", "f32"), ("j3d7pt-centre", "f32")], (527, "SSAM")),
    **dict.fromkeys([("star3d2r", "f64"), ("j3d13pt", "f64")], (126, "AN5D")),
    **dict.fromkeys([("star3d2r", "f32"), ("j3d13pt", "f32")], (271, "AN5D")),
    ("star3d3r", "f64"): (102, "AN5D"),
    ("star3d3r", "f32"): (201, "AN5D"),
    ("star3d4r", "f64"): (90, "AN5D"),
    ("star3d4r", "f32"): (178, "AN5D"),
    ("j3d17pt", "f64"): (156, "EBISU"),
    **dict.fromkeys([("box3d1r", "f64"), ("j3d27pt", "f64")], (138, "EBISU")),
    **dict.fromkeys([("box3d1r", "f32"), ("j3d27pt", "f32")], (291, "AN5D")),
    ("poisson", "f64"): (214, "SSAM"),
    ("poisson", "f32"): (377, "SSAM"),
    ("box3d2r", "f64"): (41, "AN5D"),
    ("box3d2r", "f32"): (91, "AN5D"),
}
