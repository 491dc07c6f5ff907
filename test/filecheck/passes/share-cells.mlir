// RUN: xdsl-opt %s -p share-cells | filecheck %s

// What cells have in common is computed once, in every block for itself.

"gpu.module"() <{sym_name = "kernels"}> ({
  // A difference serves its opposite where nothing but squares and magnitudes are made of that: the difference of %c
  // and %a is added, too, and stays. Addends and factors may change places; other operands may not.
  // CHECK-LABEL: ^bb0(%field: memref<4096xf64, 1 : i64>, %i: i32, %a: f64, %b: f64, %c: f64):
  // CHECK-NEXT:    %d = arith.subf %a, %b : f64
  // CHECK-NEXT:    %p = math.fma %d, %d, %a : f64
  // CHECK-NEXT:    %q = math.fma %d, %d, %b : f64
  // CHECK-NEXT:    %m = math.absf %d : f64
  // CHECK-NEXT:    %f = arith.subf %a, %c : f64
  // CHECK-NEXT:    %r = arith.mulf %f, %f : f64
  // CHECK-NEXT:    %g = arith.subf %c, %a : f64
  // CHECK-NEXT:    %s = math.fma %g, %g, %g : f64
  // CHECK-NEXT:    %t = arith.addf %p, %q : f64
  // CHECK-NEXT:    %v = arith.mulf %t, %t : f64
  // CHECK-NEXT:    %w = arith.divf %a, %b : f64
  // CHECK-NEXT:    %x = arith.divf %b, %a : f64
  // CHECK-NEXT:    %y = arith.divf %a, %b fastmath<afn> : f64
  // CHECK-NEXT:    simt.store %m, %r to %field[%i + 0]
  // CHECK-NEXT:    simt.store %s, %v to %field[%i + 2]
  // CHECK-NEXT:    simt.store %w, %x to %field[%i + 4]
  // CHECK-NEXT:    simt.store %y, %w to %field[%i + 6]
  "gpu.func"() <{function_type = (memref<4096xf64, 1>, i32, f64, f64, f64) -> (), kernel}> ({
  ^bb0(%field: memref<4096xf64, 1>, %i: i32, %a: f64, %b: f64, %c: f64):
    %d = arith.subf %a, %b : f64
    %p = math.fma %d, %d, %a : f64
    %e = arith.subf %b, %a : f64
    %q = math.fma %e, %e, %b : f64
    %m = math.absf %e : f64
    %f = arith.subf %a, %c : f64
    %r = arith.mulf %f, %f : f64
    %g = arith.subf %c, %a : f64
    %s = math.fma %g, %g, %g : f64
    %t = arith.addf %p, %q : f64
    %u = arith.addf %q, %p : f64
    %v = arith.mulf %t, %u : f64
    %w = arith.divf %a, %b : f64
    %x = arith.divf %b, %a : f64
    %y = arith.divf %a, %b fastmath<afn> : f64
    %z = arith.divf %a, %b : f64
    simt.store %m, %r to %field[%i + 0]
    simt.store %s, %v to %field[%i + 2]
    simt.store %w, %x to %field[%i + 4]
    simt.store %y, %z to %field[%i + 6]
    "gpu.return"() : () -> ()
  }) {sym_name = "row"} : () -> ()

  // Indices, loads, and values of other blocks are not shared. A comparison is shared, and so is
  // its select.
  // CHECK-LABEL: ^bb0(%n: i32
  // CHECK:         %s = arith.addf %x, %x : f64
  // CHECK:         scf.for
  // CHECK-NEXT:      %j = arith.addi %i, %n : i32
  // CHECK-NEXT:      %k = arith.addi %i, %n : i32
  // CHECK-NEXT:      %a = simt.load %field[%j + 0] : f64
  // CHECK-NEXT:      %b = simt.load %field[%k + 0] : f64
  // CHECK-NEXT:      %t = arith.addf %x, %x : f64
  // CHECK-NEXT:      %c = arith.cmpf olt, %a, %b : f64
  // CHECK-NEXT:      %e = arith.select %c, %a, %t : f64
  // CHECK-NEXT:      simt.store %e, %e to %field[%j + 2]
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %x: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %s = arith.addf %x, %x : f64
    scf.for %i = %zero to %n step %one : i32 {
      %j = arith.addi %i, %n : i32
      %k = arith.addi %i, %n : i32
      %a = simt.load %field[%j + 0] : f64
      %b = simt.load %field[%k + 0] : f64
      %t = arith.addf %x, %x : f64
      %c = arith.cmpf olt, %a, %b : f64
      %e = arith.select %c, %a, %t : f64
      %d = arith.cmpf olt, %a, %b : f64
      %f = arith.select %d, %a, %t : f64
      simt.store %e, %f to %field[%j + 2]
    }
    simt.store %s to %field[%n + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "loop"} : () -> ()
}) : () -> ()

"gpu.module"() <{sym_name = "conversions"}> ({
  // What is converted to another type is another number.
  // CHECK-LABEL: ^bb0(%out: memref<4096xf64, 1 : i64>, %w: f64):
  // CHECK:         arith.fptosi %w : f64 to i32
  // CHECK-NEXT:    arith.fptosi %w : f64 to i64
  // CHECK-NEXT:    arith.truncf %w : f64 to f32
  "gpu.func"() <{function_type = (memref<4096xf64, 1>, f64) -> (), kernel}> ({
  ^bb0(%out: memref<4096xf64, 1>, %w: f64):
    %zero = arith.constant 0 : i32
    %i = arith.fptosi %w : f64 to i32
    %j = arith.fptosi %w : f64 to i64
    %s = arith.truncf %w : f64 to f32
    %a = arith.sitofp %i : i32 to f64
    %b = arith.sitofp %j : i64 to f64
    %c = arith.extf %s : f32 to f64
    %d = arith.addf %a, %b : f64
    %e = arith.addf %d, %c : f64
    simt.store %e to %out[%zero + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "types"} : () -> ()
}) : () -> ()
