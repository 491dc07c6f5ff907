// RUN: xdsl-opt %s -p 'raise-time-loop,temporal-fusion{depths=3},device-tiling{cells=2},multi-queue-buffering{ahead=2},register-streaming' | filecheck %s
// RUN: xdsl-opt %s -p 'raise-time-loop,temporal-fusion{depths=3},device-tiling{cells=2},multi-queue-buffering{storage=shared}' | filecheck %s --check-prefix=SHARED
// RUN: xdsl-opt %s -p 'raise-time-loop,temporal-fusion{depths=3},device-tiling{cells=2},multi-queue-buffering{ahead=0}' | filecheck %s --check-prefix=REGISTERS

// One load of a coefficient serves three levels: the ring has room for the oldest plane read, the
// plane of the step, two planes on their way, and is a power of two.

// CHECK-LABEL: tile.kernel @f_d3
// CHECK:       %[[k:.*]] = tile.load %{{.*}} ahead 2 home #tile.copies<slots 8> : !tile.queue<f64, lag 1>
// CHECK-NOT:   tile.load %{{.*}} ahead
// CHECK:       tile.apply @{{.*}}(%{{.*}}, %[[k]][0, 0]) {{.*}} : !tile.queue<f64, lag 1>
// CHECK:       tile.apply @{{.*}}(%{{.*}}, %[[k]][0, 0]) {{.*}} : !tile.queue<f64, lag 2>
// CHECK:       tile.apply @{{.*}}(%{{.*}}, %[[k]][0, 0]) {{.*}} : !tile.queue<f64, lag 3>

// A kernel of one step reads every coefficient once.
// CHECK-LABEL: tile.kernel @f_step
// CHECK-NOT:   tile.copies

// Other storage keeps the planes in its own way.
// SHARED-NOT:    tile.copies
// REGISTERS-NOT: tile.copies
// REGISTERS:     tile.load %{{.*}} ahead 0 home #tile.registers<depth 2, period {{.*}}> : !tile.queue<f64, lag 1>

!field = !stencil.field<[-1,65]x[-1,65]xf64>
!temp = !stencil.temp<[-1,65]x[-1,65]xf64>

func.func @f(%u: !field, %v: !field, %c: !field, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%a = %u, %b = %v) -> (!field, !field) {
    %old = stencil.load %a : !field -> !temp
    %k = stencil.load %c : !field -> !temp
    %new = stencil.apply(%x = %old : !temp, %y = %k : !temp) -> (!stencil.temp<[0,64]x[0,64]xf64>) {
      %p = stencil.access %x[-1, 0] : !temp
      %q = stencil.access %x[1, 0] : !temp
      %s = stencil.access %y[0, 0] : !temp
      %d = arith.addf %p, %q : f64
      %e = arith.mulf %d, %s : f64
      stencil.return %e : f64
    }
    stencil.store %new to %b(<[0, 0], [64, 64]>) : !stencil.temp<[0,64]x[0,64]xf64> to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
