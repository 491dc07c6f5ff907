// RUN: not xdsl-opt %s -p 'temporal-fusion{depths=1},cut-domain{rank=0 steps=0}' 2>&1 | filecheck %s --check-prefix=STEPS
// RUN: not xdsl-opt %s -p 'cut-domain{rank=0 parts=65}' 2>&1 | filecheck %s --check-prefix=MANY
// RUN: not xdsl-opt %s -p 'cut-domain{rank=4 parts=4}' 2>&1 | filecheck %s --check-prefix=RANK
// RUN: not xdsl-opt %s -p 'cut-domain{rank=0 parts=2}' 2>&1 | filecheck %s --check-prefix=SETTLED

// A part is of a domain with cells for each rank, and loops are cut before schedules are chosen.

// SETTLED: schedule and kernels belong to the whole domain; run cut-domain before choose-schedule
// STEPS:   cut-domain: steps is at least 1, got 0
// MANY:    65 parts along axis 0, and the domain [0, 64) has 64 cells there
// RANK:    rank 4 of 4 parts
func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @heat(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] schedule #tile.schedule<cells [8]> {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}
