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
    "cut-sweeps": lazy("passes.cells.cut_sweeps", "CutSweepsPass"),
    "drop-timers": lazy("passes.stencil.drop_timers", "DropTimersPass"),
    "drop-swaps": lazy("passes.stencil.drop_swaps", "DropSwapsPass"),
    "join-levels": lazy("passes.stencil.join_levels", "JoinLevelsPass"),
    "join-parts": lazy("passes.stencil.join_parts", "JoinPartsPass"),
    "lower-affine-nests": lazy("passes.stencil.lower_affine_nests", "LowerAffineNestsPass"),
    "name-pointers": lazy("passes.stencil.name_pointers", "NamePointersPass"),
    "fold-subviews": lazy("passes.stencil.fold_subviews", "FoldSubviewsPass"),
    "split-levels": lazy("passes.stencil.split_levels", "SplitLevelsPass"),
    "raise-reductions": lazy("passes.stencil.raise_reductions", "RaiseReductionsPass"),
    "split-nests": lazy("passes.stencil.split_nests", "SplitNestsPass"),
    "raise-levels": lazy("passes.stencil.raise_levels", "RaiseLevelsPass"),
    "raise-nests": lazy("passes.stencil.raise_nests", "RaiseNestsPass"),
    "carry-fields": lazy("passes.stencil.carry_fields", "CarryFieldsPass"),
    "store-carried": lazy("passes.stencil.store_carried", "StoreCarriedPass"),
    "widen-booleans": lazy("passes.stencil.widen_booleans", "WidenBooleansPass"),
    "unroll-loops": lazy("passes.stencil.unroll_loops", "UnrollLoopsPass"),
    "load-fields": lazy("passes.stencil.load_fields", "LoadFieldsPass"),
    "index-fields": lazy("passes.stencil.index_fields", "IndexFieldsPass"),
    "roll-returns": lazy("passes.stencil.roll_returns", "RollReturnsPass"),
    "select-branches": lazy("passes.stencil.select_branches", "SelectBranchesPass"),
    "inline-values": lazy("passes.stencil.inline_values", "InlineValuesPass"),
    "bound-accesses": lazy("passes.stencil.bound_accesses", "BoundAccessesPass"),
    "split-guards": lazy("passes.stencil.split_guards", "SplitGuardsPass"),
    "gather-cells": lazy("passes.stencil.gather_cells", "GatherCellsPass"),
    "inline-calls": lazy("passes.stencil.inline_calls", "InlineCallsPass"),
    "raise-time-loop": lazy("passes.raising.raise_time_loop", "RaiseTimeLoopPass"),
    "expand-boundaries": lazy("passes.loops.expand_boundaries", "ExpandBoundariesPass"),
    "split-edges": lazy("passes.loops.split_edges", "SplitEdgesPass"),
    "hoist-invariants": lazy("passes.loops.hoist_invariants", "HoistInvariantsPass"),
    "hoist-scalars": lazy("passes.loops.hoist_scalars", "HoistScalarsPass"),
    "expand-powers": lazy("passes.cells.expand_powers", "ExpandPowersPass"),
    "expand-cells": lazy("passes.cells.expand_cells", "ExpandCellsPass"),
    "drop-updates": lazy("passes.loops.drop_updates", "DropUpdatesPass"),
    "group-updates": lazy("passes.loops.group_updates", "GroupUpdatesPass"),
    "join-updates": lazy("passes.loops.join_updates", "JoinUpdatesPass"),
    "split-regions": lazy("passes.loops.split_regions", "SplitRegionsPass"),
    "store-layers": lazy("passes.loops.store_layers", "StoreLayersPass"),
    "share-places": lazy("passes.loops.share_places", "SharePlacesPass"),
    "simplify-cells": lazy("passes.cells.simplify_cells", "SimplifyCellsPass"),
    "factor-sums": lazy("passes.cells.factor_sums", "FactorSumsPass"),
    "sort-terms": lazy("passes.cells.sort_terms", "SortTermsPass"),
    "contract-cells": lazy("passes.cells.contract_cells", "ContractCellsPass"),
    "share-subexpressions": lazy("passes.cells.share_subexpressions", "ShareSubexpressionsPass"),
    "common-halos": lazy("passes.loops.common_halos", "CommonHalosPass"),
    "choose-schedule": lazy("passes.scheduling.choose_schedule", "ChooseSchedulePass"),
    "continue-accesses": lazy("passes.stencil.continue_accesses", "ContinueAccessesPass"),
    "drop-edge-copies": lazy("passes.loops.drop_edge_copies", "DropEdgeCopiesPass"),
    "copy-edges": lazy("passes.loops.copy_edges", "CopyEdgesPass"),
    "cut-domain": lazy("passes.loops.cut_domain", "CutDomainPass"),
    "temporal-fusion": lazy("passes.loops.temporal_fusion", "TemporalFusionPass"),
    "device-tiling": lazy("passes.tiling.device_tiling", "DeviceTilingPass"),
    "store-box": lazy("passes.tiling.store_box", "StoreBoxPass"),
    "store-beside": lazy("passes.tiling.store_beside", "StoreBesidePass"),
    "split-sums": lazy("passes.tiling.split_sums", "SplitSumsPass"),
    "carry-halos": lazy("passes.tiling.carry_halos", "CarryHalosPass"),
    "multi-queue-buffering": lazy("passes.tiling.multi_queue_buffering", "MultiQueueBufferingPass"),
    "register-streaming": lazy("passes.tiling.register_streaming", "RegisterStreamingPass"),
    "peel-boundaries": lazy("passes.tiling.peel_boundaries", "PeelBoundariesPass"),
    "ebisu": lazy("passes.systems.ebisu", "EbisuPass"),
    "an5d": lazy("passes.systems.an5d", "An5dPass"),
    "ssam": lazy("passes.systems.ssam", "SsamPass"),
    "dtb": lazy("passes.systems.dtb", "DtbPass"),
    "semi-stencil": lazy("passes.systems.semi_stencil", "SemiStencilPass"),
    "stencilgen": lazy("passes.systems.stencilgen", "StencilgenPass"),
    "target-arch": lazy("passes.target_arch", "TargetArchPass"),
    "lower-tile-to-gpu": lazy("lowering.lower_tile_to_gpu", "LowerTileToGpuPass"),
    "order-threads": lazy("lowering.threads.order_threads", "OrderThreadsPass"),
    "share-cells": lazy("lowering.threads.share_cells", "ShareCellsPass"),
    "carry-cells": lazy("lowering.threads.carry_cells", "CarryCellsPass"),
    "spare-registers": lazy("lowering.threads.spare_registers", "SpareRegistersPass"),
    "expand-division": lazy("lowering.division.expand_division", "ExpandDivisionPass"),
    "convert-gpu-to-nvvm": lazy("lowering.convert_gpu_to_nvvm", "ConvertGpuToNvvmPass"),
    "convert-temporal-to-llvm": lazy(
        "lowering.cpu.convert_temporal_to_llvm", "ConvertTemporalToLlvmPass"
    ),
    "plan-launches": lazy("lowering.plan_launches", "PlanLaunchesPass"),
    "timetile": lazy("lowering.pipelines", "TimetilePass"),
}

TARGETS = {"ptx": lazy("lowering.ptx.target", "PtxTarget")}

TIMETILE_UNIVERSE = Universe(all_dialects=DIALECTS, all_passes=PASSES, all_targets=TARGETS)
