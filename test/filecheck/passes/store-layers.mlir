// RUN: xdsl-opt %s -p store-layers | filecheck %s

// The layer of %f and %g is used in rows of 10 cells, all of them written, and is stored without gaps between
// rows; the layer of %k, read beside the written cells, in whole accesses. Buffers that take turns have
// fields that take turns. The rows of %C, which the loop only reads, are stored, too. %u is used everywhere.

builtin.module {
  func.func private @fade(%m: f32, %a: f32) -> f32 {
    %s = arith.addf %m, %a : f32
    func.return %s : f32
  }
  func.func @layered(%n: index, %U: !stencil.field<[0,512]x[0,512]x[0,512]xf32>, %F: !stencil.field<[0,512]x[0,512]x[0,512]xf32>, %G: !stencil.field<[0,512]x[0,512]x[0,512]xf32>, %K: !stencil.field<[0,512]x[0,512]x[0,512]xf32>, %C: !stencil.field<[0,512]x[0,512]x[0,512]xf32>) {
    temporal.loop %n (%u = %U, %f = %F, %g = %G, %k = %K) rotate [0, 2, 1, 3] {
      temporal.update %g = @fade(%f[0, 0, 0], %u[0, 0, 1]) in <[1, 1, 2], [511, 511, 12]>
      temporal.update %u = @fade(%u[0, 0, 0], %g[0, 0, 0]) in <[1, 1, 2], [511, 511, 12]>
      temporal.update %u = @fade(%u[0, 0, 0], %u[0, 0, 0]) in <[1, 1, 12], [511, 511, 501]>
      temporal.update %k = @fade(%u[0, 0, 0], %u[0, 0, 0]) in <[1, 1, 500], [511, 511, 510]>
      temporal.update %u = @fade(%C[0, 0, 0], %k[0, 0, -2]) in <[1, 1, 501], [511, 511, 511]>
    } : !stencil.field<[0,512]x[0,512]x[0,512]xf32>, !stencil.field<[0,512]x[0,512]x[0,512]xf32>, !stencil.field<[0,512]x[0,512]x[0,512]xf32>, !stencil.field<[0,512]x[0,512]x[0,512]xf32>
    func.return
  }
  // A loop of the host would copy the layer in each of its turns.
  func.func @nested(%n: index, %F: !stencil.field<[0,512]x[0,512]x[0,512]xf32>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %n step %one {
      temporal.loop %n (%f = %F) rotate [0] {
        temporal.update %f = @fade(%f[0, 0, 0], %f[0, 0, 0]) in <[1, 1, 2], [511, 511, 12]>
      } : !stencil.field<[0,512]x[0,512]x[0,512]xf32>
    }
    func.return
  }
}

// CHECK-LABEL: func.func @layered
// CHECK-NEXT:    %[[F:[a-z0-9_]+]] = temporal.scratch : !stencil.field<[1,511]x[1,511]x[2,12]xf32>
// CHECK-NEXT:    %[[G:[a-z0-9_]+]] = temporal.scratch : !stencil.field<[1,511]x[1,511]x[2,12]xf32>
// CHECK-NEXT:    %[[K:[a-z0-9_]+]] = temporal.scratch : !stencil.field<[1,511]x[1,511]x[496,512]xf32>
// CHECK-NEXT:    %[[C:[a-zA-Z0-9_]+]] = temporal.scratch : !stencil.field<[1,511]x[1,511]x[500,512]xf32>
// CHECK:         temporal.loop %{{.*}} (%[[a:.*]] = %[[F]], %[[b:.*]] = %[[G]], %[[c:.*]] = %[[K]], %[[d:.*]] = %[[C]]) rotate [0, 1, 2, 3] sweep {
// CHECK-NEXT:      temporal.update %[[a]] = @copied(%F[0, 0, 0]) in <[1, 1, 2], [511, 511, 12]>
// CHECK-NEXT:      temporal.update %[[b]] = @copied(%G[0, 0, 0]) in <[1, 1, 2], [511, 511, 12]>
// CHECK-NEXT:      temporal.update %[[c]] = @copied(%K[0, 0, 0]) in <[1, 1, 496], [511, 511, 512]>
// CHECK-NEXT:      temporal.update %[[d]] = @copied(%C[0, 0, 0]) in <[1, 1, 500], [511, 511, 512]>
// CHECK:         temporal.loop %n (%u = %U, %f = %F, %g = %G, %k = %K, %[[f:.*]] = %[[F]], %[[g:.*]] = %[[G]], %[[k:.*]] = %[[K]]) rotate [0, 2, 1, 3, 5, 4, 6] {
// CHECK-NEXT:      temporal.update %[[g]] = @fade(%[[f]][0, 0, 0], %u[0, 0, 1]) in <[1, 1, 2], [511, 511, 12]>
// CHECK-NEXT:      temporal.update %u = @fade(%u[0, 0, 0], %[[g]][0, 0, 0]) in <[1, 1, 2], [511, 511, 12]>
// CHECK-NEXT:      temporal.update %u = @fade(%u[0, 0, 0], %u[0, 0, 0]) in <[1, 1, 12], [511, 511, 501]>
// CHECK-NEXT:      temporal.update %[[k]] = @fade(%u[0, 0, 0], %u[0, 0, 0]) in <[1, 1, 500], [511, 511, 510]>
// CHECK-NEXT:      temporal.update %u = @fade(%[[C]][0, 0, 0], %[[k]][0, 0, -2]) in <[1, 1, 501], [511, 511, 511]>
// CHECK:         temporal.loop %{{.*}} (%[[a:.*]] = %F, %[[b:.*]] = %G, %[[c:.*]] = %K) rotate [0, 1, 2] sweep {
// CHECK-NEXT:      temporal.update %[[a]] = @copied(%[[F]][0, 0, 0]) in <[1, 1, 2], [511, 511, 12]>
// CHECK-NEXT:      temporal.update %[[b]] = @copied(%[[G]][0, 0, 0]) in <[1, 1, 2], [511, 511, 12]>
// CHECK-NEXT:      temporal.update %[[c]] = @copied(%[[K]][0, 0, 0]) in <[1, 1, 500], [511, 511, 510]>
// CHECK-LABEL: func.func @nested
// CHECK-NOT:     temporal.scratch
