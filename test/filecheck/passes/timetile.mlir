// RUN: xdsl-opt %s -p 'timetile{depth=3}' 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'timetile{depth=3 fp-contract=off}' 2>/dev/null | filecheck %s --check-prefix=PLAIN
// RUN: xdsl-opt %s -p 'timetile{depth=3 arch=sm_80}' -t ptx 2>/dev/null | filecheck %s --check-prefix=PTX
// RUN: xdsl-opt %s -p timetile 2>/dev/null | filecheck %s --check-prefix=CHOSEN

// The whole pipeline under one name: from a time loop of the stencil dialect to kernels that the PTX
// target prints, beside the loop that names them. A time loop that the host takes part in
// stays a loop of the host, around a sweep.

!field = !stencil.field<[-1,4097]x[-1,4097]xf64>
!temp = !stencil.temp<?x?xf64>

// CHECK:       scf.for in @other: the time loop runs a step at a time: the loop carries a value of type f64
// CHECK:       func.func private @heat_cell0
// CHECK:         math.fma
// PLAIN:       func.func private @heat_cell0
// PLAIN-NOT:     math.fma

// CHECK:       "gpu.module"() <{sym_name = "heat_d3"}>
// CHECK-NEXT:    llvm.func @heat_d3(%{{.*}}: !llvm.ptr<1>, {{.*}}) attributes {nvvm.kernel
// CHECK-NOT:   {{tile.(load|apply|store|kernel)|gpu.barrier|simt.mark|memref<|math.fma .* fastmath}}
// CHECK:         scf.for
// CHECK:           math.fma
// CHECK:         llvm.return
// CHECK:       "gpu.module"() <{sym_name = "heat_step"}>
// CHECK-LABEL: func.func @heat(
// CHECK:         temporal.loop %n {{.*}} rotate [1, 0] depths [3, 1] schedule {{.*}} kernels [@heat_d3, @heat_step]

// PTX:         .target sm_80
// PTX:         .visible .entry heat_d3(
// PTX:           fma.rn.f64
// PTX:         .visible .entry heat_step(

// Without a depth the schedule's is taken.
// CHOSEN:      kernels [@heat_d{{[0-9]+}}, {{.*}}@heat_step]
func.func @heat(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %k = arith.constant 0.2 : f64
      %0 = stencil.access %x[-1, 0] : !temp
      %1 = stencil.access %x[0, -1] : !temp
      %2 = stencil.access %x[0, 1] : !temp
      %3 = stencil.access %x[1, 0] : !temp
      %4 = arith.mulf %0, %k : f64
      %5 = arith.mulf %1, %k : f64
      %6 = arith.addf %4, %5 : f64
      %7 = arith.mulf %2, %k : f64
      %8 = arith.addf %6, %7 : f64
      %9 = arith.mulf %3, %k : f64
      %10 = arith.addf %8, %9 : f64
      stencil.return %10 : f64
    }
    stencil.store %v to %b(<[0, 0], [4096, 4096]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// CHECK-LABEL: func.func @other
// CHECK:         scf.for
// CHECK:           temporal.loop {{.*}} sweep depths [1]
func.func @other(%n: index, %s: f64, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%x = %s) -> (f64) {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %B(<[0, 0], [4096, 4096]>) : !temp to !field
    scf.yield %x : f64
  }
  return
}
