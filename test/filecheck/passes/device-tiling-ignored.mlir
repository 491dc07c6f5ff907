// RUN: xdsl-opt %s -p 'raise-time-loop,device-tiling{tile=block warps=2 pack=8}' --verify-diagnostics 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'raise-time-loop,device-tiling{tile=warp pack=8}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=WARP

// Warp tiles share a block; a tile of several warps has a block of its own.

// CHECK:    tile.kernel in @plate_step: pack=8 is ignored: a block holds one tile; leave out the option, or give tile=warp
// WARP-NOT: ignored
// WARP:     layout #tile.layout<warp, {{.*}}, pack 8>
func.func @plate(%a: !stencil.field<[-1,65]x[-1,65]xf64>, %b: !stencil.field<[-1,65]x[-1,65]xf64>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%u = %a, %v = %b) -> (!stencil.field<[-1,65]x[-1,65]xf64>, !stencil.field<[-1,65]x[-1,65]xf64>) {
    %l = stencil.load %u : !stencil.field<[-1,65]x[-1,65]xf64> -> !stencil.temp<?x?xf64>
    %o = stencil.apply(%x = %l : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
      %c = stencil.access %x[-1, 0] : !stencil.temp<?x?xf64>
      stencil.return %c : f64
    }
    stencil.store %o to %v(<[0, 0], [64, 64]>) : !stencil.temp<?x?xf64> to !stencil.field<[-1,65]x[-1,65]xf64>
    scf.yield %v, %u : !stencil.field<[-1,65]x[-1,65]xf64>, !stencil.field<[-1,65]x[-1,65]xf64>
  }
  func.return
}
