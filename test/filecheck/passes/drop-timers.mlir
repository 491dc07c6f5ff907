// RUN: xdsl-opt %s -p drop-timers --split-input-file | filecheck %s

// Calls that measure time are left out, and so are the stores through a pointer that only they need. A call
// that may touch memory stays, and so does a pointer's store that others read.

// CHECK-LABEL: func.func @measured
// CHECK-NEXT:    %{{.*}} = arith.constant 1.000000e+03
// CHECK-NEXT:    func.return
func.func @measured(%timers: !llvm.ptr) {
  %t0 = func.call @timer_start() : () -> f64
  %t1 = func.call @timer_end(%t0) : (f64) -> f64
  %thousand = arith.constant 1000.0 : f64
  %ms = arith.mulf %t1, %thousand : f64
  "llvm.store"(%ms, %timers) <{"ordering" = 0 : i64}> : (f64, !llvm.ptr) -> ()
  return
}
func.func private @timer_start() -> f64
func.func private @timer_end(f64) -> f64

// -----

// CHECK-LABEL: func.func @touches_memory
// CHECK-NEXT:    func.call @fill(%memory)
func.func @touches_memory(%memory: memref<8xf64>) {
  func.call @fill(%memory) : (memref<8xf64>) -> ()
  return
}
func.func private @fill(memref<8xf64>)

// -----

// CHECK-LABEL: func.func @is_read
// CHECK:         llvm.store
// CHECK:         llvm.load
func.func @is_read(%timers: !llvm.ptr) -> f64 {
  %t0 = func.call @now() : () -> f64
  "llvm.store"(%t0, %timers) <{"ordering" = 0 : i64}> : (f64, !llvm.ptr) -> ()
  %again = "llvm.load"(%timers) <{"ordering" = 0 : i64}> : (!llvm.ptr) -> f64
  return %again : f64
}
func.func private @now() -> f64
