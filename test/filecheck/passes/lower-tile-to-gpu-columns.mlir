// RUN: xdsl-opt %s -p lower-tile-to-gpu | filecheck %s

// Where planes in the middle of all columns are joined, the warp of a tile loops over the columns that its chunk goes on in.

!field = !stencil.field<[-2,66]x[-2,1026]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// Of 17 columns of 64 planes 24 of each are joined, from plane 20 to before 44. The first 34 tiles are a column's other
// planes: their loop makes one turn.
// CHECK-LABEL: sym_name = "joined"
// CHECK-DAG:     %[[c0:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[c1:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[low:.*]] = arith.constant 20 : i32
// CHECK-DAG:     %[[high:.*]] = arith.constant 44 : i32
// CHECK-DAG:     %[[joined:.*]] = arith.constant 24 : i32
// CHECK-DAG:     %[[alone:.*]] = arith.constant 34 : i32
// CHECK-DAG:     %[[pitch:.*]] = arith.constant 26 : i32
// CHECK:         %[[warp:.*]] = simt.uniform
// CHECK:         %[[tile:.*]] = arith.addi %{{.*}}, %[[warp]] : i32
// CHECK:         %[[own:.*]] = arith.remui %[[tile]], %{{.*}} : i32
// CHECK:         %[[after:.*]] = arith.addi %[[own]], %[[c1]] : i32
// From one column to the next it is two planes more than are joined: a restart takes two steps.
// CHECK:         %[[first:.*]] = arith.divui %{{.*}}, %[[pitch]] : i32
// CHECK:         %[[last:.*]] = arith.divui %{{.*}}, %[[pitch]] : i32
// CHECK:         %[[is_alone:.*]] = arith.cmpi ult, %[[tile]], %[[alone]] : i32
// CHECK-NEXT:    %[[begin:.*]] = arith.select %[[is_alone]], %[[own]], %[[first]] : i32
// CHECK-NEXT:    %[[end:.*]] = arith.select %[[is_alone]], %[[after]], %[[last]] : i32
// CHECK-NEXT:    %[[from:.*]] = arith.select %[[is_alone]]
// CHECK-NEXT:    %[[to:.*]] = arith.select %[[is_alone]]
// CHECK-NEXT:    scf.for %[[column:.*]] = %[[begin]] to %[[end]] step %[[c1]] : i32 {
// Its own first and last plane count in the first and the last column, else the joined ones do.
// CHECK-NEXT:      %[[is_first:.*]] = arith.cmpi eq, %[[column]], %[[begin]] : i32
// CHECK-NEXT:      %[[next:.*]] = arith.addi %[[column]], %[[c1]] : i32
// CHECK-NEXT:      %[[is_last:.*]] = arith.cmpi eq, %[[next]], %[[end]] : i32
// CHECK-NEXT:      arith.select %[[is_first]], %[[from]], %[[low]] : i32
// CHECK-NEXT:      arith.select %[[is_last]], %[[to]], %[[high]] : i32
// Nothing is on its way to the warp's ring any more, and no lane still reads it, before copies start anew.
// CHECK:           "nvvm.cp.async.wait.group"() <{n = 0 : i32}>
// CHECK-NEXT:      "nvvm.bar.warp.sync"
// CHECK:           simt.copy_async
// CHECK:           scf.for
// CHECK:           simt.store
// CHECK:         "gpu.return"
// CHECK:       grid 14, block
tile.kernel @joined(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 1024]>
    layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [1], planes 20, joined 24>] occupancy 2 {
  %u = tile.load %src ahead 1 home #tile.registers<depth 1, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}
