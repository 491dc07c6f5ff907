// RUN: xdsl-opt %s -p lower-tile-to-gpu | filecheck %s

// A field need not have all cells of the bounds. This kernel writes rows 0 to 63 of one field and rows 2 to
// 59 of another, and reads a third that has no others: accesses to these test their row, `row - 2 < 58` as
// unsigned numbers, in tiles inside the rim as well. Stores to a field that has all cells keep to the bounds
// anyway.

!all = !stencil.field<[-1,65]x[-1,1025]xf64>
!some = !stencil.field<[2,60]x[-1,1025]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: "gpu.module"() <{sym_name = "rows"}>
// CHECK:       %[[rows:.*]] = arith.constant 58 : i32
// CHECK-NEXT:  %[[before:.*]] = arith.constant -2 : i32
// CHECK:       scf.if
// CHECK:         scf.for
// CHECK:           %[[read:.*]] = arith.addi %[[row:.*]], %[[before]] : i32
// CHECK-NEXT:      %[[has:.*]] = arith.cmpi ult, %[[read]], %[[rows]] : i32
// CHECK-NEXT:      simt.load %K[%{{.*}} + 0] mask %[[has]] : f64, f64
// CHECK:           %[[own:.*]] = arith.andi %[[cells:.*]], %[[chunk:.*]] : i1
// CHECK-NEXT:      simt.store %{{.*}}, %{{.*}} to %dst[%{{.*}} + 0] mask %[[own]]
// CHECK:           %[[written:.*]] = arith.addi %[[row]], %[[before]] : i32
// CHECK-NEXT:      %[[takes:.*]] = arith.cmpi ult, %[[written]], %[[rows]] : i32
// CHECK-NEXT:      %[[both:.*]] = arith.andi %[[cells]], %[[chunk]] : i1
// CHECK-NEXT:      %[[all:.*]] = arith.andi %[[both]], %[[takes]] : i1
// CHECK-NEXT:      simt.store %{{.*}}, %{{.*}} to %other[%{{.*}} + 0] mask %[[all]]
tile.kernel @rows(%src: !all, %K: !some, %dst: !all, %other: !some)
    roles [#tile.role<source 0>, #tile.role<capture 0>, #tile.role<target 0>, #tile.role<target 1>]
    steps 1 stream 0 bounds <[0, 0], [64, 1024]> layout #tile.layout<warp, [2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1], planes 64>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %k = tile.load %K home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0], %u[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %w = tile.apply @cell(%k[0, 0], %u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !all
  tile.store %w to %other : !tile.queue<f64, lag 0>, !some
}
