// RUN: xdsl-opt %s -p 'dtb{arch=h100-sxm}' | filecheck %s

// Deep temporal blocking: blocks that hold a tile for all steps, with messages of edges a step and without a streaming axis; as many
// blocks a tile as need the fewest turns of the device.

// CHECK-LABEL: tile.kernel @heat_d
// CHECK-SAME:    steps {{[0-9]+}} bounds
// CHECK-SAME:    layout #tile.layout<device, [5 cells x 16 warps x {{[0-9]+}} blocks, 4 cells x 32 lanes]>
// CHECK:         tile.load %src ahead 0 home #tile.registers<depth 0, period 1>
// CHECK-NEXT:    what edges delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space global, sync flags>
// CHECK:       sync flags, occupancy 1, resident>

!field = !stencil.field<[-1,8193]x[-1,8193]xf64>
!temp = !stencil.temp<?x?xf64>

func.func @heat(%a: !field, %b: !field, %steps: index) {
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
