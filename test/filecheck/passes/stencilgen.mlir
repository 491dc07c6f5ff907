// RUN: xdsl-opt %s -p stencilgen | filecheck %s

// As in STENCILGEN, planes shift through registers, each level has planes of its own in shared memory, and nothing is fetched ahead.

// CHECK-LABEL: tile.kernel @plate_d4
// CHECK-SAME:    layout #tile.layout<block, [1 cells x 32 lanes x 4 warps]>
// CHECK:         %[[u:.*]] = tile.load %src ahead 0 home #tile.registers<depth 2, period 1>
// CHECK-COUNT-4: what plane delay 1 home #tile.exchange_buffer<slots 2, shifting, every 1, space shared, sync barrier>
// CHECK-NOT:     tile.exchange
// CHECK:         tile.store
// CHECK:       temporal.loop {{.*}} schedule #tile.schedule<tile block, cells [1], warps [4], addressing shifting, ahead 0, period 1, occupancy 8>

!field = !stencil.field<[-1,8193]x[-1,8193]xf64>
!temp = !stencil.temp<?x?xf64>

func.func @plate(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, 0] : !temp
      %x1 = stencil.access %x[0, -1] : !temp
      %x2 = stencil.access %x[0, 0] : !temp
      %x3 = stencil.access %x[0, 1] : !temp
      %x4 = stencil.access %x[1, 0] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s3 = arith.addf %s2, %x3 : f64
      %s = arith.addf %s3, %x4 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0], [8192, 8192]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}
