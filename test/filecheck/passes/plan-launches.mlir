// RUN: xdsl-opt %s -p 'device-tiling,plan-launches{steps=10}' --split-input-file --verify-diagnostics 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'device-tiling,plan-launches{steps=0}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ZERO
// RUN: xdsl-opt %s -p 'device-tiling,plan-launches{steps=100}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=LONG
// RUN: xdsl-opt %s -p 'device-tiling,plan-launches' --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: xdsl-opt %s -p 'device-tiling,multi-queue-buffering,peel-boundaries,lower-tile-to-gpu,plan-launches{steps=10}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=LOWERED
// RUN: xdsl-opt %s -p 'plan-launches{steps=10}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=MISSING

// The time loop becomes launches of its kernels: the deepest first, the last steps one at a time into
// the program's own buffers, so that each ends with what the unfused program leaves in it.

!field = !stencil.field<[-1,65]xf64>

func.func private @sum(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// Two buffers: sources, targets, and halos of the buffers, in the roles before the launch's first step.
// Kernels read data inside the right halo. After four steps the halo is the first buffer's, so data alternate
// between the first buffer and a copy of the buffer. The results are the buffers named by the arguments at
// the end.
// CHECK-LABEL: func.func @heat(
// CHECK-NEXT:    %[[s:.*]] = tile.scratch like %A
// CHECK-NEXT:    tile.copy %A to %[[s]] :
// CHECK-NEXT:    tile.launch @heat_d4(%A, %[[s]], %A, %B){{.*}} :
// CHECK-NEXT:    tile.launch @heat_d4(%[[s]], %A, %A, %B){{.*}} :
// CHECK-NEXT:    tile.launch @heat_step(%A, %B, %A, %B){{.*}} :
// CHECK-NEXT:    tile.launch @heat_step(%B, %A, %B, %A){{.*}} :
// CHECK-NEXT:    func.return %A, %B :
// CHECK-NOT:   temporal.loop

// No steps leave everything as it is.
// ZERO-LABEL:  func.func @heat(
// ZERO-NEXT:     func.return %A, %B :

// A long run is a loop over the launches that repeat.
// LONG-LABEL:  func.func @heat(
// LONG-NEXT:     %[[s:.*]] = tile.scratch like %A
// LONG-NEXT:     tile.copy %A to %[[s]] :
// LONG-NEXT:     tile.launch @heat_d4(%A, %[[s]], %A, %B){{.*}} :
// LONG-DAG:      %[[zero:.*]] = arith.constant 0 : index
// LONG-DAG:      %[[one:.*]] = arith.constant 1 : index
// LONG:          scf.for %{{.*}} = %[[zero]] to %{{.*}} step %[[one]] {
// LONG-NEXT:       tile.launch @heat_d4(%[[s]], %A, %A, %B){{.*}} :
// LONG-NEXT:       tile.launch @heat_d4(%A, %[[s]], %A, %B){{.*}} :
// LONG-NEXT:     }
// LONG:          tile.launch @heat_step(%[[s]], %B, %A, %B){{.*}} :
// LONG-NEXT:     tile.launch @heat_step(%B, %A, %B, %A){{.*}} :
// LONG-NEXT:     func.return %A, %B :

// UNKNOWN:       temporal.loop in @heat: the number of steps is known only at run time; the runtime plans the loop
// UNKNOWN-LABEL: func.func @heat(
// UNKNOWN:         temporal.loop

// Lowered kernels are planned alike.
// LOWERED-LABEL: func.func @heat(
// LOWERED-NEXT:    %[[s:.*]] = tile.scratch like %A
// LOWERED-NEXT:    tile.copy %A to %[[s]] :
// LOWERED-NEXT:    tile.launch @heat_d4(%A, %[[s]], %A, %B){{.*}} :

// MISSING:       temporal.loop in @heat: the loop has no kernels; run device-tiling first
func.func @heat(%n: index, %A: !field, %B: !field) -> (!field, !field) {
  %last, %before = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [4, 2, 1] {
    temporal.update %b = @sum(%a[-1], %a[1]) in <[0], [64]>
  } : !field, !field
  func.return %last, %before : !field, !field
}

// -----

// After an odd number of steps the other buffer's halo is the right one: data stays in the program's own two.

!field = !stencil.field<[-1,65]xf64>

func.func private @sum(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @odd(
// CHECK-NEXT:    tile.launch @odd_d3(%A, %B, %A, %B){{.*}} :
// CHECK-NEXT:    tile.launch @odd_d3(%B, %A, %B, %A){{.*}} :
// CHECK-NEXT:    tile.launch @odd_d3(%A, %B, %A, %B){{.*}} :
// CHECK-NEXT:    tile.launch @odd_step(%B, %A, %B, %A){{.*}} :
// CHECK-NEXT:    func.return %A, %B :
func.func @odd(%n: index, %A: !field, %B: !field) -> (!field, !field) {
  %last, %before = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [3, 1] {
    temporal.update %b = @sum(%a[-1], %a[1]) in <[0], [64]>
  } : !field, !field
  func.return %last, %before : !field, !field
}

// -----

!field = !stencil.field<[-1,65]xf64>

func.func private @wave(%u: f64, %v: f64, %k: f64, %dt: f64) -> f64 {
  %s = arith.addf %u, %v : f64
  %t = arith.mulf %k, %dt : f64
  %r = arith.subf %s, %t : f64
  func.return %r : f64
}

// Three buffers, of which two are live: two sources and two targets need a fourth one. Coefficients
// and scalars are passed as they are. The last two steps at least go one at a time.
// CHECK-LABEL: func.func @second_order(
// CHECK-NEXT:    %[[x:.*]] = tile.scratch like %A
// CHECK-NOT:     {{tile.copy|tile.scratch}}
// CHECK:         tile.launch @second_order_d4(%A, %C, %B, %[[x]], %A, %B, %C, %K, %dt){{.*}} :
// CHECK-NEXT:    tile.launch @second_order_d{{[24]}}(%B, %[[x]], %{{.*}}, %{{.*}}, %B, %C, %A, %K, %dt){{.*}} :
// CHECK:         tile.launch @second_order_step(%C, %B, %A, %C, %A, %B, %K, %dt){{.*}} :
// CHECK-NEXT:    tile.launch @second_order_step(%A, %C, %B, %A, %B, %C, %K, %dt){{.*}} :
// CHECK-NEXT:    func.return %B :
func.func @second_order(%n: index, %dt: f64, %A: !field, %B: !field, %C: !field, %K: !field) -> !field {
  %last, %next, %before = temporal.loop %n (%now = %A, %next = %B, %before = %C) rotate [1, 2, 0] depths [4, 2, 1] {
    temporal.update %next = @wave(%now[-1], %before[0], %K[0]) scalars(%dt) in <[0], [64]>
  } : !field, !field, !field
  func.return %last : !field
}

// -----

!field = !stencil.field<[0,64]xf64>

func.func private @grow(%u: f64) -> f64 {
  %s = arith.addf %u, %u : f64
  func.return %s : f64
}

// One buffer that is updated in place, and a number of steps that the program states: an even number
// of launches by way of a scratch buffer ends in place. An odd number has to start from a copy.
// UNKNOWN-LABEL: func.func @in_place(
// UNKNOWN:         %[[x:.*]] = tile.scratch like %A
// UNKNOWN-NEXT:    tile.copy %A to %[[x]] :
// UNKNOWN-NEXT:    tile.launch @in_place_step(%[[x]], %A, %A){{.*}} :
// UNKNOWN-NEXT:    func.return %A :
// CHECK-LABEL:   func.func @in_place(
// CHECK:           %[[x:.*]] = tile.scratch like %A
// CHECK-NOT:       tile.copy
// CHECK:           func.return %A :
func.func @in_place(%A: !field) -> !field {
  %n = arith.constant 1 : index
  %last = temporal.loop %n (%a = %A) rotate [0] depths [4, 2, 1] {
    temporal.update %a = @grow(%a[0]) in <[0], [64]>
  } : !field
  func.return %last : !field
}

// -----

!field = !stencil.field<[0,64]xf64>

// MISSING: temporal.loop in @lost: the kernel @gone is not in the module; run device-tiling again
func.func @lost(%n: index, %A: !field) {
  temporal.loop %n (%a = %A) rotate [0] kernels [@gone] {
    temporal.update %a = @grow(%a[0]) in <[0], [64]>
  } : !field
  func.return
}
