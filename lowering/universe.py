"""
The dialects, passes and target of timetile, as found by xdsl-opt. Every xdsl-opt run imports this
file: keep the file light.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from xdsl.universe import Universe


def lazy(module: str, name: str) -> Callable[[], Any]:
    """A factory with an import at the first call."""
    return lambda: getattr(importlib.import_module(f"timetile.{module}"), name)


DIALECTS = {
    "temporal": lazy("dialects.temporal", "Temporal"),
    "tile": lazy("dialects.tile", "Tile"),
    "simt": lazy("dialects.simt", "Simt"),
    "nvvm": lazy("dialects.nvvm", "Nvvm"),
}

PASSES = {
    "drop-timers": lazy("passes.drop_timers", "DropTimersPass"),
    "load-fields": lazy("passes.load_fields", "LoadFieldsPass"),
    "index-fields": lazy("passes.index_fields", "IndexFieldsPass"),
    "roll-returns": lazy("passes.roll_returns", "RollReturnsPass"),
    "select-branches": lazy("passes.select_branches", "SelectBranchesPass"),
    "inline-values": lazy("passes.inline_values", "InlineValuesPass"),
    "bound-accesses": lazy("passes.bound_accesses", "BoundAccessesPass"),
    "split-guards": lazy("passes.split_guards", "SplitGuardsPass"),
    "gather-cells": lazy("passes.gather_cells", "GatherCellsPass"),
    "inline-calls": lazy("passes.inline_calls", "InlineCallsPass"),
    "raise-time-loop": lazy("passes.raise_time_loop", "RaiseTimeLoopPass"),
    "expand-boundaries": lazy("passes.expand_boundaries", "ExpandBoundariesPass"),
    "hoist-invariants": lazy("passes.hoist_invariants", "HoistInvariantsPass"),
    "expand-powers": lazy("passes.expand_powers", "ExpandPowersPass"),
    "expand-cells": lazy("passes.expand_cells", "ExpandCellsPass"),
    "simplify-cells": lazy("passes.simplify_cells", "SimplifyCellsPass"),
    "contract-cells": lazy("passes.contract_cells", "ContractCellsPass"),
    "share-subexpressions": lazy("passes.share_subexpressions", "ShareSubexpressionsPass"),
    "common-halos": lazy("passes.common_halos", "CommonHalosPass"),
    "choose-schedule": lazy("passes.choose_schedule", "ChooseSchedulePass"),
    "temporal-fusion": lazy("passes.temporal_fusion", "TemporalFusionPass"),
    "device-tiling": lazy("passes.device_tiling", "DeviceTilingPass"),
    "split-sums": lazy("passes.split_sums", "SplitSumsPass"),
    "carry-halos": lazy("passes.carry_halos", "CarryHalosPass"),
    "multi-queue-buffering": lazy("passes.multi_queue_buffering", "MultiQueueBufferingPass"),
    "register-streaming": lazy("passes.register_streaming", "RegisterStreamingPass"),
    "peel-boundaries": lazy("passes.peel_boundaries", "PeelBoundariesPass"),
    "target-arch": lazy("passes.target_arch", "TargetArchPass"),
    "lower-tile-to-gpu": lazy("lowering.lower_tile_to_gpu", "LowerTileToGpuPass"),
    "order-threads": lazy("lowering.order_threads", "OrderThreadsPass"),
    "share-cells": lazy("lowering.share_cells", "ShareCellsPass"),
    "carry-cells": lazy("lowering.carry_cells", "CarryCellsPass"),
    "expand-division": lazy("lowering.expand_division", "ExpandDivisionPass"),
    "convert-gpu-to-nvvm": lazy("lowering.convert_gpu_to_nvvm", "ConvertGpuToNvvmPass"),
    "convert-temporal-to-llvm": lazy(
        "lowering.cpu.convert_temporal_to_llvm", "ConvertTemporalToLlvmPass"
    ),
    "plan-launches": lazy("lowering.plan_launches", "PlanLaunchesPass"),
    "timetile": lazy("lowering.pipelines", "TimetilePass"),
}

TARGETS = {"ptx": lazy("lowering.ptx.target", "PtxTarget")}

TIMETILE_UNIVERSE = Universe(all_dialects=DIALECTS, all_passes=PASSES, all_targets=TARGETS)
