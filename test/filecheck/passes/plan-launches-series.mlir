// RUN: xdsl-opt %s -p 'temporal-fusion{depths=2},device-tiling,plan-launches{steps=103}' --verify-diagnostics | filecheck %s

// The host reads the numbers of a series ahead of a launch: for each step of the launch, in each turn of a loop.

func.func private @cell(%l: f64, %r: f64, %f: f64) -> f64 {
  %s = arith.addf %l, %f : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @driven
// CHECK:         scf.for %[[turn:.*]] = %
// CHECK-NEXT:      %[[period:.*]] = arith.constant 4 : index
// CHECK-NEXT:      %[[passed:.*]] = arith.muli %[[turn]], %[[period]] : index
// CHECK-NEXT:      %[[first:.*]] = tile.step_value %f at %[[passed]] plus 2 : memref<?xf64> -> f64
// CHECK-NEXT:      %[[second:.*]] = tile.step_value %f at %[[passed]] plus 3 : memref<?xf64> -> f64
// CHECK-NEXT:      tile.launch @driven_d2(%{{.*}}, %[[first]], %[[second]])
// CHECK-NEXT:      %{{.*}} = tile.step_value %f at %[[passed]] plus 4 : memref<?xf64> -> f64
// CHECK:         }
// CHECK:         tile.launch @driven_step(
func.func @driven(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>, %f: memref<?xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) scalars(%f) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}
