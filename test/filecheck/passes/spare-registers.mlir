// RUN: xdsl-opt %s -p spare-registers | filecheck %s
// RUN: xdsl-opt %s -p spare-registers | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s -p 'spare-registers{loads=false stores=false}' | filecheck %s --check-prefix=FEW

// A loop over stream steps has copies of the numbers from outside, and far rows have an index each.

"gpu.module"() <{sym_name = "kernels"}> ({
  // The end of the loop stays equal in all lanes; the ring's place is the own lane's. Constants and values of the loop
  // have no copy. The second vector of a row shares the row's index.
  // CHECK-LABEL: ^bb0(%n: i32, %u: memref<1000000xf64, 1 : i64>):
  // CHECK:         [[thread:%[0-9]+]] = "gpu.thread_id"
  // CHECK:         [[own:%[0-9]+]] = arith.andi
  // CHECK:         [[here:%[0-9]+]] = simt.pick %at lane [[own]] : i32
  // CHECK-NEXT:    [[last:%[0-9]+]] = simt.uniform %n : i32
  // CHECK-NEXT:    scf.for %i = %zero to [[last]] step %one : i32 {
  // CHECK-NEXT:      %row = arith.addi %i, [[here]] : i32
  // CHECK-NEXT:      %v = simt.load %ring{{\[}}[[here]] + 64] : f64
  // CHECK-NEXT:      %x = simt.shuffle %v delta 1 : f64
  // CHECK-NEXT:      %{{[0-9]+}} = arith.constant 40960 : i32
  // CHECK-NEXT:      [[a:%[0-9]+]] = arith.addi %row, %{{[0-9]+}} : i32
  // CHECK-NEXT:      simt.copy_async %ring{{\[}}[[here]] + 0], %u{{\[}}[[a]] + 0] bytes 16
  // CHECK-NEXT:      simt.copy_async %ring{{\[}}[[here]] + 64], %u{{\[}}[[a]] + 64] bytes 16
  // CHECK-NEXT:      %{{[0-9]+}} = arith.constant 49152 : i32
  // CHECK-NEXT:      [[b:%[0-9]+]] = arith.addi %row, %{{[0-9]+}} : i32
  // CHECK-NEXT:      simt.store %x to %u{{\[}}[[b]] + 0]
  // CHECK-NEXT:    }
  // A loop without exchanges, perhaps of some lanes alone, stays.
  // CHECK-NEXT:    scf.for %j = %zero to %n step %one : i32 {
  // CHECK-NEXT:      %w = simt.load %ring[%at + 0] : f64

  // FEW:           simt.pick
  // FEW:           simt.copy_async %ring[{{.*}} + 0], %u[%row + 40960] bytes 16
  // FEW:           simt.store %x to %u[%row + 49152]
  "gpu.func"() <{function_type = (i32, memref<1000000xf64, 1>) -> (), kernel}> ({
  ^bb0(%n: i32, %u: memref<1000000xf64, 1>):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ring = simt.shared at 0 : memref<8192xf64, 3>
    %at = arith.addi %n, %n : i32
    scf.for %i = %zero to %n step %one : i32 {
      %row = arith.addi %i, %at : i32
      %v = simt.load %ring[%at + 64] : f64
      %x = simt.shuffle %v delta 1 : f64
      simt.copy_async %ring[%at + 0], %u[%row + 40960] bytes 16
      simt.copy_async %ring[%at + 64], %u[%row + 41024] bytes 16
      simt.store %x to %u[%row + 49152]
    }
    scf.for %j = %zero to %n step %one : i32 {
      %w = simt.load %ring[%at + 0] : f64
      simt.store %w to %u[%j + 0]
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "run"} : () -> ()
}) : () -> ()
