// RUN: xdsl-opt %s -p 'device-tiling{pack=0}' --verify-diagnostics | filecheck %s --check-prefix=PACK
// RUN: xdsl-opt %s -p 'device-tiling{stream-axis=2}' --verify-diagnostics | filecheck %s --check-prefix=AXIS
// RUN: xdsl-opt %s -p 'device-tiling,device-tiling' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'device-tiling{lanes=16}' --verify-diagnostics | filecheck %s --check-prefix=LANES
// RUN: xdsl-opt %s -p 'device-tiling{lanes=32,1}' --verify-diagnostics | filecheck %s --check-prefix=AXES
// RUN: xdsl-opt %s -p 'choose-schedule{depth=0}' --verify-diagnostics | filecheck %s --check-prefix=DEPTH
// RUN: xdsl-opt %s -p 'choose-schedule{multiprocessors=0}' --verify-diagnostics | filecheck %s --check-prefix=MULTIPROCESSORS
// RUN: xdsl-opt %s -p 'multi-queue-buffering{period=-2}' --verify-diagnostics | filecheck %s --check-prefix=PERIOD
// RUN: xdsl-opt %s -p 'register-streaming{delay=-1}' --verify-diagnostics | filecheck %s --check-prefix=DELAY
// RUN: xdsl-opt %s -p 'peel-boundaries{planes=0}' --verify-diagnostics | filecheck %s --check-prefix=PLANES
// RUN: xdsl-opt %s -p 'peel-boundaries{edge-weight=-1.0}' --verify-diagnostics | filecheck %s --check-prefix=WEIGHT
// RUN: xdsl-opt %s -p 'plan-launches{steps=-4}' --verify-diagnostics | filecheck %s --check-prefix=STEPS

// A wrong count is refused with the least count, and a wrong layout with the fault.

// PACK: device-tiling: pack is at least 1, got 0
// AXIS: temporal.loop in @heat: the domain has axes 0 to 1, got stream-axis 2; give device-tiling one of these axes
// TWICE: temporal.loop in @heat: the loop has kernels already; start from the program as before device-tiling
// LANES: temporal.loop in @heat: the lanes of a layout multiply to 32, got 16; give device-tiling another layout
// AXES: temporal.loop in @heat: the layout has 2 in-plane axes and the domain 1; give device-tiling cells, lanes and warps for each
// DEPTH: choose-schedule: depth is at least 1, got 0
// MULTIPROCESSORS: choose-schedule: multiprocessors is at least 1, got 0
// PERIOD: multi-queue-buffering: period is at least 0, got -2
// DELAY: register-streaming: delay is at least 0, got -1
// PLANES: peel-boundaries: planes is at least 1, got 0
// WEIGHT: peel-boundaries: edge-weight is above 0, got -1.0
// STEPS: plan-launches: steps is at least 0, got -4

func.func private @mean(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

func.func @heat(%n: index, %A: !stencil.field<[-1,65]x[-1,65]xf64>, %B: !stencil.field<[-1,65]x[-1,65]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @mean(%a[-1, 0], %a[1, 0]) in <[0, 0], [64, 64]>
  } : !stencil.field<[-1,65]x[-1,65]xf64>, !stencil.field<[-1,65]x[-1,65]xf64>
  func.return
}
