"""Published systems as passes: sizes by a paper's formulas, then the passes of `tiling`."""
