"""
Fitted on an H200. The number behind a `#` is the evidence: kernels that were assembled, timed or
measured.
"""

from __future__ import annotations

from timetile.dialects.tile import Sync
from timetile.passes.targets.fit import Fit
from timetile.passes.targets.parameters import (
    Computing,
    Moving,
    Parameters,
    Reading,
    Registers,
    RimParameters,
    Spare,
    Waiting,
    Worth,
)

PARAMETERS = Parameters(
    registers=Registers(
        fixed=30,
        per_word=1.0,
        load=4,
        many_taps=20,
        shared_row=1.5,
        level={8: 0, 4: 8},  # stars in 3D, assembled
        sum_level=8,  # boxes in 3D, assembled
        late_copies=1.5,  # wide stars in 3D, assembled
        reach=11,  # stars of radius 2 to 4 in 2D, FP32: the deepest kernels that spill nothing
        dividing_cell={8: 2, 4: 1},  # kernels with quotients and roots, assembled
        dividing=6,  # kernels with quotients and roots
        approximating=7,  # gradients of 6 and 8 cells a lane: 12 and 8 levels spill nothing
        values=12,
        scalars=32,
        volume=1.55,  # 12 assembled kernels: 1.4 to 1.6
        resident=36,  # 150 assembled kernels
        resident_cell=12,  # 150 assembled kernels
        held=3.5,  # heat conduction beginning with both far planes, assembled: 3.6 to 5
        joining=13,  # boxes in 2D, assembled: 10 to 15
        turns=30,  # boxes in 2D, assembled
        turns_level=3,  # 9 points at seven levels of six cells, assembled
    ),
    spare=Spare(
        guards={8: 37, 4: 16},
        one_level=11,
        dividing=5,
        tight=18,
        sums=25,  # with 25 registers to spare, guarded copies of sums spill little
        resident=36,
        turns=5,
    ),
    computing=Computing(
        pipe_efficiency=0.85,
        # 226 kernels, 36 of steps as users write them: 5.6% off, 11.3% with the general values.
        word_strips=0.944,
        one_cell_speed=0.92,  # boxes in 3D, FP64
        many_warps_speed=1.07,  # schedules in 3D: speed of three warps a scheduler relative to two
        many_warps_of_systems=0.88,  # Gray-Scott and Burgers in 3D, FP32, on an H100
        several_blocks=0.94,  # the last block alone cannot fill the pipes
        resident_efficiency=0.69,  # 430 schedules of nine small plates
        few_warps=8,  # two a scheduler
        fixed_instructions=20,
        overhead_share=0.3,  # boxes
        guard_instructions=1.4,  # 3D; nothing hides the instructions
        sum_guard_instructions=7.1,  # 3D
        spill_instructions=2,
        spill_cycles=3.4,  # 18 kernels on an H100, 2.5 to 6: benchmarks/results/spills-h100.json
        far_spill_cycles=20.0,  # on an H100: elastic waves in 2D, seven steps
        # On an H100: FP32 in 2D and 3D, loops of 682 to 5242 instructions; FP64 up to 4664.
        fetch_cycles={2: 2.0, 3: 0.2, 4: 0.0},
        constants_at_hand=30,  # boxes in 2D
        dividing_warps={8: 12, 4: 16},
        exact_side={8: 18, 4: 12},  # five points and means of nine by a known number, assembled
        dividing_power=1 / 3,  # 8 and 12 of 12 warps in FP64
    ),
    waiting=Waiting(
        tile_step=0.1e-6,  # 99 schedules in 3D
        barrier=0.1e-6,  # boxes in 3D
        # On an H200: boxes in 2D, FP32, 5 to 7 levels in two blocks of 8 warps, 13 in six of 2.
        several_blocks=0.4,
        cluster=0.13e-6,  # stars in 3D
        message={
            Sync.FLAGS: 0.5e-6,
            Sync.GRID: 1.25e-6,
        },  # 16 tiles of the device whose planes are in registers
        message_bytes_per_second=60e9,  # resident volumes
        launch=2e-6,  # 750 schedules of small plates
        long_step=180,  # 72 schedules of small cubes
        long_step_instruction=0.016e-6,  # 72 schedules of small cubes
        latency=1e-6,
        # On an H100: 14 kernels in 3D that spill 3 to 76 words in FP64, 0.2 to 0.85.
        spilled={8: 0.45e-6, 4: 0.0},
        exposed_latency=0.45,  # 14 kernels that fetch nothing ahead or keep planes in shared memory
    ),
    moving=Moving(
        overlap_power=4,
        word_strips=0.893,  # the 226 kernels of `computing.word_strips`
        double_strips=0.9,  # boxes of 2 x 2 to 7 x 7: 225 to 231 GCells/s, 254 without
        # Filters of 5 x 5 and 4 x 4: 6 cells a lane 409 to 420 GCells/s, 4 and 8 cells 443 to 457.
        parted_vectors=0.92,
        word_strips_power=8,
        short_row_bytes=512,
        short_row=0.85,  # rows of 256 and 128 bytes
        found_in_l2=0.5,  # wide stars in 3D
        found_beside=0.6,  # wide stars in 3D
        found_together=0.85,  # stars in 3D
        one_ahead=0.85,  # wide stars in 3D
        dealt=0.85,  # j3d7pt FP64: rows of 513 cells take 1.14 times as long as rows of 514
        two_vectors=0.88,  # 16, 32 and 64 bytes a lane: 255, 233 and 167 GCells/s at a depth of one
        # On an H100: waves with a coefficient, six steps.
        crowded={8: 0.65, 4: 0.9},
        # On an H100: Burgers' equation and Yee's scheme in 3D, 0.75 to 0.9.
        many_fields=0.78,
        broken_sectors=0.75,  # Yee's scheme in 3D: 0.65 to 1
        l2=2.5,
        l2_share=0.75,  # two fields of 1500^2 in FP64 stay
    ),
    reading=Reading(
        memory=1.0,  # 76 kernels of one to nine fields on an H100: 6% off
        l2_bytes_per_cycle=4000,
        one_word=0.92,
        pipes=0.6,
        overlap_power=3,
        registers={8: 58, 4: 40},  # 76 assembled kernels of one to nine fields
        vector=0.75,
        dividing=12,
        loads=128,  # 22 kernels of 19 to 464 loads on an H200: 12% off in the mean
        loads_power=1.3,
        one_block=0.85,
        # Five kernels of 7 and 9 points in 3D, FP32: one cell a thread 182 and 203 GCells/s.
        latency=0.83e-6,
        # Six kernels of 5 to 13 points in plates, FP32, 354 to 490 GCells/s: 5% off.
        vector_word=1.7,
    ),
    rim=RimParameters(
        halos={
            1: 2.25,
            2: 1.5,
        },  # stars of radius 1; the copy computes little more than other code, but waits
        guards={1: 1.15, 2: 1.2},  # timed warp by warp: 1.0 to 1.2
        word_sums=1.1,  # 25 points in 2D, timed warp by warp
        sums=1.1,  # 17 and 19 points at three levels run 5% faster than 1.2 says
        wide=1.35,  # timed: 1.25 and 1.4
        # j2d5pt and j3d7pt, timed warp by warp: periodic 0.99 to 1.05, mirrors 1.08 and 1.14; by
        # copies beside the box, mirrors 1.2, periodic 1.4 and 1.18 for vectors of four and two
        # cells.
        images=1.02,
        # j3d7pt in FP64, timed block by block: mirrors 1.32, a value 1.31.
        selects={1: 0.1, 2: 0.1, 4: 0.28},
        cut_vectors=0.08,
        divided=0.1,
        # A wave of order 4 in FP32, timed warp by warp: a step on the rim takes 1.35 to 1.39 steps
        # inside with a source or receivers, 1.46 to 1.51 with both, 1.24 without. Volumes were not
        # timed.
        points={1: 1.3, 2: 1.0},
        # Quotients by 118 in FP64, speed by weights of 1.15, 1.6 and 2: five points at seven
        # levels 809, 1013 and 1112, at eight 728, 899 and 967, a box of nine by rows of sums 731,
        # 816 and 805. Whole sums of a box at seven levels lose 6% by 2, gradients 2% by 1.6, and
        # boxes in FP32 up to 7%.
        dividing={1: 0.85, 2: 0.0},
    ),
    worth=Worth(
        level=0.995,
        wide_sum_cells=12,
        wide_sums=0.96,  # five kernels of 9, 25 and 49 points reach 4 to 6% less than predicted
        # The mean of nine in FP32, shares of the prediction: 4 cells of a lane 0.76 to 0.80 at five
        # to seven levels, 6 cells 1.1, 8 cells 1.02; whole sums of 4 cells 1.03.
        divided_row_cells=6,
        divided_rows=0.8,
        # The mean of 27 in FP64 by a known number, shares of the prediction at two levels: pairs of
        # cells 0.42 to 0.5, single cells 0.75.
        divided_pairs=0.6,
        many_quotients=6,
        quotients=0.8,  # shallow water on an H100: 138 of 202 predicted at two levels
        # Yee's scheme on an H100, GPts/s at 3, 4 and 5 levels: 97, 93 and 85 of 85, 110 and 127.
        many_fields_levels=3,
        many_fields=0.85,
        # j3d7pt of 512^3, measured over predicted: 0.84 to 0.86 for four tiles of five levels, 1.0
        # and 1.04 for two of four levels. The clock falls to 1.55 GHz, and to 1.74 at four levels.
        double_levels=4,
        deep_doubles=0.87,
        resident_device=0.6,  # some of 21 tiles are half as fast as predicted
        turns=1.02,
        turns_taps={8: 1100, 4: 2200},  # boxes in 2D gain 2 to 5%
        least_ahead=2,  # j3d7pt FP64: 617 GCells/s with one plane ahead, 697 with two
        resident_instructions=3600,  # longer code takes twice the time
    ),
)

FIT = Fit(
    isa="sm_90",
    part="h200",
    base="h200",
    checked=("h100-sxm",),
    date="2026-11",
    assembler="nvJitLink 13.0",
    samples=(
        "h200-2d.jsonl",
        "h200-3d.jsonl",
    ),
    assembled=("registers-sm_90.jsonl",),
    unfitted=(
        "registers.scalars",
        "spare.turns",
        "computing.constants_at_hand",
        "computing.many_warps_of_systems",
        "computing.fetch_cycles.2",
        "computing.fetch_cycles.3",
        "computing.fetch_cycles.4",
        "computing.exact_side.8",
        "computing.exact_side.4",
        "waiting.several_blocks",
        "waiting.latency",
        "waiting.exposed_latency",
        "waiting.spilled.8",
        "waiting.spilled.4",
        "moving.crowded.8",
        "moving.crowded.4",
        "moving.many_fields",
        "moving.broken_sectors",
        "moving.l2_share",
        "moving.parted_vectors",
        "reading.memory",
        "reading.l2_bytes_per_cycle",
        "reading.one_word",
        "reading.pipes",
        "reading.overlap_power",
        "reading.registers.8",
        "reading.registers.4",
        "reading.vector",
        "reading.dividing",
        "reading.loads",
        "reading.loads_power",
        "reading.one_block",
        "reading.latency",
        "rim.halos.2",
        "rim.points.1",
        "rim.points.2",
        "rim.dividing.1",
        "rim.dividing.2",
        "worth.many_quotients",
        "worth.quotients",
        "worth.many_fields_levels",
        "worth.many_fields",
        "worth.double_levels",
        "worth.deep_doubles",
        "worth.turns_taps.8",
        "worth.turns_taps.4",
        "worth.least_ahead",
        "worth.resident_instructions",
    ),
    parameters=PARAMETERS,
)
