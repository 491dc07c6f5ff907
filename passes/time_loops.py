"""The passes from the stencil dialect to time loops: the start of every executor and system."""

from __future__ import annotations

from xdsl.passes import ModulePass

from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.contract_cells import ContractCellsPass, FpContract
from timetile.passes.cells.cut_sweeps import CutSweepsPass
from timetile.passes.cells.expand_cells import ExpandCellsPass
from timetile.passes.cells.expand_powers import ExpandPowersPass
from timetile.passes.cells.factor_sums import FactorSumsPass
from timetile.passes.cells.share_subexpressions import ShareSubexpressionsPass
from timetile.passes.cells.simplify_cells import FpDivision, SimplifyCellsPass
from timetile.passes.cells.sort_terms import SortTermsPass
from timetile.passes.loops.common_halos import CommonHalosPass
from timetile.passes.loops.drop_updates import DropUpdatesPass
from timetile.passes.loops.expand_boundaries import ExpandBoundariesPass
from timetile.passes.loops.group_updates import GroupUpdatesPass
from timetile.passes.loops.hoist_invariants import HoistInvariantsPass
from timetile.passes.loops.hoist_scalars import HoistScalarsPass
from timetile.passes.loops.join_updates import JoinUpdatesPass
from timetile.passes.loops.share_places import SharePlacesPass
from timetile.passes.loops.split_edges import SplitEdgesPass
from timetile.passes.loops.store_layers import StoreLayersPass
from timetile.passes.raising.raise_time_loop import RaiseTimeLoopPass
from timetile.passes.stencil.bound_accesses import BoundAccessesPass
from timetile.passes.stencil.carry_fields import CarryFieldsPass
from timetile.passes.stencil.continue_accesses import ContinueAccessesPass
from timetile.passes.stencil.drop_swaps import DropSwapsPass
from timetile.passes.stencil.drop_timers import DropTimersPass
from timetile.passes.stencil.fold_subviews import FoldSubviewsPass
from timetile.passes.stencil.gather_cells import GatherCellsPass
from timetile.passes.stencil.index_fields import IndexFieldsPass
from timetile.passes.stencil.inline_calls import InlineCallsPass
from timetile.passes.stencil.inline_values import InlineValuesPass
from timetile.passes.stencil.join_levels import JoinLevelsPass
from timetile.passes.stencil.join_parts import JoinPartsPass
from timetile.passes.stencil.load_fields import LoadFieldsPass
from timetile.passes.stencil.lower_affine_nests import LowerAffineNestsPass
from timetile.passes.stencil.name_pointers import NamePointersPass
from timetile.passes.stencil.raise_levels import RaiseLevelsPass
from timetile.passes.stencil.raise_nests import RaiseNestsPass
from timetile.passes.stencil.raise_reductions import RaiseReductionsPass
from timetile.passes.stencil.roll_returns import RollReturnsPass
from timetile.passes.stencil.select_branches import SelectBranchesPass
from timetile.passes.stencil.split_guards import SplitGuardsPass
from timetile.passes.stencil.split_levels import SplitLevelsPass
from timetile.passes.stencil.split_nests import SplitNestsPass
from timetile.passes.stencil.store_carried import StoreCarriedPass
from timetile.passes.stencil.unroll_loops import UnrollLoopsPass
from timetile.passes.stencil.widen_booleans import WidenBooleansPass


def spelling_passes() -> tuple[ModulePass, ...]:
    """
    Passes that give the programs of all frontends one form: values, continued reads, no branches.
    Calls are inlined and parts joined first: later passes see the operations of a call, and one
    domain.
    """
    return (
        DropTimersPass(),
        InlineCallsPass(),
        DropSwapsPass(),
        JoinPartsPass(),
        NamePointersPass(),
        # Loops over memrefs become applies, and truth values integers.
        LowerAffineNestsPass(),
        FoldSubviewsPass(),
        SplitLevelsPass(),
        RaiseLevelsPass(),
        RaiseReductionsPass(),
        SplitNestsPass(),
        RaiseNestsPass(),
        CarryFieldsPass(),
        WidenBooleansPass(),
        # Loops are unrolled before branches are selected: a branch may hold a loop.
        UnrollLoopsPass(),
        LoadFieldsPass(),
        StoreCarriedPass(),
        IndexFieldsPass(),
        ContinueAccessesPass(),
        # Before branches are gone: branches tell the accesses skipped by a cell.
        SplitGuardsPass(),
        SelectBranchesPass(),
        # After select-branches, since a branch may decide the place of an access.
        BoundAccessesPass(),
        # After all rewrites of accesses: cells are compared by accesses.
        RollReturnsPass(),
        # A value read only at its own cell needs no field; other computed places become gathers.
        InlineValuesPass(),
        GatherCellsPass(),
        JoinLevelsPass(),
    )


def temporal_passes(
    fp_contract: FpContract = "fast",
    fp_division: FpDivision = "exact",
    fp_reassoc: FpReassoc = "flags",
    *,
    common_halos: bool = False,
    points: bool = False,
    layers: bool = False,
) -> tuple[ModulePass, ...]:
    """
    Passes from the stencil dialect to time loops with contracted cells, the start of every
    executor. `common_halos`: the caller makes the promise of the pass `common-halos`; `points`: the
    caller runs the functions of the host's work at points.
    """
    return (
        *spelling_passes(),
        RaiseTimeLoopPass(points),
        # Later passes see only boxes whose outside is kept.
        ExpandBoundariesPass(),
        ExpandPowersPass(),  # to products, which contraction may fuse
        ExpandCellsPass(),  # rare cases of integers and NaNs, before folding
        SimplifyCellsPass(fp_division),
        # Contraction may fuse invariant and variant operations, and looks at readers of a value.
        HoistInvariantsPass(),
        SharePlacesPass(),
        # What two updates compute in common has one order of terms, where the order is free.
        JoinUpdatesPass(fp_reassoc),
        # Terms are factored and sorted first: a chain of terms contracts to a chain.
        FactorSumsPass(fp_reassoc),
        SortTermsPass(fp_reassoc),
        # Contraction comes before schedules: all schedules then compute equal bits.
        ContractCellsPass(fp_contract),
        CutSweepsPass(fp_reassoc),  # of contracted cells: changes have the arithmetic of cells
        ShareSubexpressionsPass(),
        # After contraction, fused operations stay fused, and cells at the edge are as others.
        HoistScalarsPass(),
        # Splitting comes after contraction; dropping and grouping look at final boxes and readers.
        SplitEdgesPass(),
        DropUpdatesPass(),
        GroupUpdatesPass(),
        *((CommonHalosPass(),) if common_halos else ()),
        # Sweeps that copy layers leave the cells around all updates as they are.
        *((StoreLayersPass(),) if layers else ()),
    )
