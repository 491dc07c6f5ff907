// RUN: xdsl-opt %s -p carry-cells | filecheck %s
// RUN: xdsl-opt %s -p carry-cells | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s -p carry-cells,carry-cells | filecheck %s

// A value computed for the next turn is carried in place of its plane.

"gpu.module"() <{sym_name = "kernels"}> ({
  // The last difference of a turn is the first difference of the next turn with the other sign, and both are squared. The
  // difference is computed once ahead of the loop, and the second loop takes it from the first loop.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64, %b: f64, %c: f64):
  // CHECK:         [[first:%[0-9]+]] = arith.subf %b, %a : f64
  // CHECK-NEXT:    [[d0:%[a-z0-9]+]], [[v0:%[a-z0-9]+]] = scf.for %i = %zero to %n step %one iter_args([[d:%[a-z0-9]+]] = [[first]], [[v:%[a-z0-9]+]] = %b)
  // CHECK-NEXT:      [[p:%[a-z0-9]+]] = math.fma [[d]], [[d]], %c : f64
  // CHECK-NEXT:      [[w:%[a-z0-9]+]] = simt.load
  // CHECK-NEXT:      [[e:%[a-z0-9]+]] = arith.subf [[v]], [[w]] : f64
  // CHECK-NEXT:      math.fma [[e]], [[e]], [[p]] : f64
  // CHECK-NEXT:      simt.store
  // CHECK-NEXT:      scf.yield [[e]], [[w]] : f64, f64
  // CHECK-NEXT:    }
  // CHECK-NEXT:    {{.*}}, {{.*}} = scf.for %j = %n to %m step %one iter_args([[d:%[a-z0-9]+]] = [[d0]], {{.*}} = [[v0]])
  // CHECK-NEXT:      math.fma [[d]], [[d]], %c : f64
  // CHECK-NEXT:      simt.load
  // CHECK-NEXT:      arith.subf
  // CHECK-NOT:       arith.subf
  // CHECK:         "gpu.return"
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64, %c: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %m = arith.addi %n, %n : i32
    %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %a, %v = %b) -> (f64, f64) : i32 {
      %d = arith.subf %v, %u : f64
      %p = math.fma %d, %d, %c : f64
      %w = simt.load %field[%i + 0] : f64
      %e = arith.subf %v, %w : f64
      %q = math.fma %e, %e, %p : f64
      simt.store %q to %field[%i + 0]
      scf.yield %v, %w : f64, f64
    }
    %u1, %v1 = scf.for %j = %n to %m step %one iter_args(%x = %u0, %y = %v0) -> (f64, f64) : i32 {
      %d = arith.subf %y, %x : f64
      %p = math.fma %d, %d, %c : f64
      %w = simt.load %field[%j + 0] : f64
      %e = arith.subf %y, %w : f64
      %q = math.fma %e, %e, %p : f64
      simt.store %q to %field[%j + 0]
      scf.yield %y, %w : f64, f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "loops"} : () -> ()

  // Two loops in a loop hand the planes to each other: both carry the difference, and it is computed once, ahead of all.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64, %b: f64, %c: f64, %nest: f64):
  // CHECK:         [[first:%[0-9]+]] = arith.subf %b, %a : f64
  // CHECK-NEXT:    scf.for %t = %zero to %two step %one iter_args([[d:%[a-z0-9_]+]] = [[first]], [[v:%[a-z0-9_]+]] = %b)
  // CHECK-NEXT:      [[d0:%[a-z0-9_]+]], [[v0:%[a-z0-9_]+]] = scf.for %i = %zero to %n step %one iter_args([[x:%[a-z0-9_]+]] = [[d]], {{.*}} = [[v]])
  // CHECK-NEXT:        math.fma [[x]], [[x]], %c : f64
  // CHECK-NEXT:        [[w:%[a-z0-9_]+]] = simt.load
  // CHECK-NEXT:        [[e:%[a-z0-9_]+]] = arith.subf
  // CHECK:             scf.yield [[e]], [[w]] : f64, f64
  // CHECK:           [[d1:%[a-z0-9_]+]], [[v1:%[a-z0-9_]+]] = scf.for %j = %n to %m step %one iter_args([[x:%[a-z0-9_]+]] = [[d0]], {{.*}} = [[v0]])
  // CHECK-NEXT:        math.fma [[x]], [[x]], %c : f64
  // CHECK:             [[e:%[a-z0-9_]+]] = arith.subf
  // CHECK:             scf.yield [[e]], {{.*}} : f64, f64
  // CHECK:           scf.yield [[d1]], [[v1]] : f64, f64
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64, %c: f64, %nest: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %m = arith.addi %n, %n : i32
    %u2, %v2 = scf.for %t = %zero to %two step %one iter_args(%r = %a, %s = %b) -> (f64, f64) : i32 {
      %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %r, %v = %s) -> (f64, f64) : i32 {
        %d = arith.subf %v, %u : f64
        %p = math.fma %d, %d, %c : f64
        %w = simt.load %field[%i + 0] : f64
        %e = arith.subf %v, %w : f64
        %q = math.fma %e, %e, %p : f64
        simt.store %q to %field[%i + 0]
        scf.yield %v, %w : f64, f64
      }
      %u1, %v1 = scf.for %j = %n to %m step %one iter_args(%x = %u0, %y = %v0) -> (f64, f64) : i32 {
        %d = arith.subf %y, %x : f64
        %p = math.fma %d, %d, %c : f64
        %w = simt.load %field[%j + 0] : f64
        %e = arith.subf %y, %w : f64
        %q = math.fma %e, %e, %p : f64
        simt.store %q to %field[%j + 0]
        scf.yield %y, %w : f64, f64
      }
      scf.yield %u1, %v1 : f64, f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "nest"} : () -> ()

  // The choice depends on the turn of the loop around, and nothing ahead of that loop knows it: each turn chooses anew.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64, %b: f64, %c: f64, %turn: f64):
  // CHECK-NOT:     arith.select
  // CHECK:         scf.for %t = %zero to %two step %one iter_args({{.*}} = %a, {{.*}} = %b)
  // CHECK-NEXT:      [[even:%[a-z0-9]+]] = arith.cmpi eq, %t, %zero : i32
  // CHECK:           scf.for %i = %zero to %n step %one iter_args([[u:%[a-z0-9]+]] = {{.*}}, [[v:%[a-z0-9]+]] = {{.*}})
  // CHECK-NEXT:        arith.select [[even]], [[u]], %c : f64
  // CHECK:           scf.for %j = %n to %m step %one iter_args([[x:%[a-z0-9]+]] = {{.*}}, [[y:%[a-z0-9]+]] = {{.*}})
  // CHECK-NEXT:        arith.select [[even]], [[x]], %c : f64
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64, %c: f64, %turn: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %m = arith.addi %n, %n : i32
    %u2, %v2 = scf.for %t = %zero to %two step %one iter_args(%r = %a, %s = %b) -> (f64, f64) : i32 {
      %even = arith.cmpi eq, %t, %zero : i32
      %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %r, %v = %s) -> (f64, f64) : i32 {
        %d = arith.select %even, %u, %c : f64
        %w = simt.load %field[%i + 0] : f64
        %e = arith.select %even, %v, %c : f64
        %q = math.fma %d, %e, %w : f64
        simt.store %q to %field[%i + 0]
        scf.yield %v, %w : f64, f64
      }
      %u1, %v1 = scf.for %j = %n to %m step %one iter_args(%x = %u0, %y = %v0) -> (f64, f64) : i32 {
        %d = arith.select %even, %x, %c : f64
        %w = simt.load %field[%j + 0] : f64
        %e = arith.select %even, %y, %c : f64
        %q = math.fma %d, %e, %w : f64
        simt.store %q to %field[%j + 0]
        scf.yield %y, %w : f64, f64
      }
      scf.yield %u1, %v1 : f64, f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "turn_of_the_loop_around"} : () -> ()

  // One of two loops in a loop reads the plane itself: neither carries the difference.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64, %b: f64, %c: f64, %read: f64):
  // CHECK:         scf.for %t = %zero to %two step %one iter_args({{.*}} = %a, {{.*}} = %b)
  // CHECK-NEXT:      scf.for %i = %zero to %n step %one iter_args([[u:%[a-z0-9]+]] = {{.*}}, [[v:%[a-z0-9]+]] = {{.*}})
  // CHECK-NEXT:        arith.subf [[v]], [[u]] : f64
  // CHECK:           scf.for %j = %n to %m step %one iter_args([[x:%[a-z0-9]+]] = {{.*}}, [[y:%[a-z0-9]+]] = {{.*}})
  // CHECK-NEXT:        arith.subf [[y]], [[x]] : f64
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64, %c: f64, %read: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %m = arith.addi %n, %n : i32
    %u2, %v2 = scf.for %t = %zero to %two step %one iter_args(%r = %a, %s = %b) -> (f64, f64) : i32 {
      %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %r, %v = %s) -> (f64, f64) : i32 {
        %d = arith.subf %v, %u : f64
        %p = math.fma %d, %d, %c : f64
        %w = simt.load %field[%i + 0] : f64
        %e = arith.subf %v, %w : f64
        %q = math.fma %e, %e, %p : f64
        simt.store %q to %field[%i + 0]
        scf.yield %v, %w : f64, f64
      }
      %u1, %v1 = scf.for %j = %n to %m step %one iter_args(%x = %u0, %y = %v0) -> (f64, f64) : i32 {
        %d = arith.subf %y, %x : f64
        %p = math.fma %d, %d, %x : f64
        %w = simt.load %field[%j + 0] : f64
        %e = arith.subf %y, %w : f64
        %q = math.fma %e, %e, %p : f64
        simt.store %q to %field[%j + 0]
        scf.yield %y, %w : f64, f64
      }
      scf.yield %u1, %v1 : f64, f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "plane_is_read"} : () -> ()

  // After the loop the sign of the difference matters, and the loop's own is the other way round: nothing is carried.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64, %b: f64, %c: f64, %sign: f64):
  // CHECK:         [[u:%[a-z0-9]+]], [[v:%[a-z0-9]+]] = scf.for %i = %zero to %n step %one iter_args([[older:%[a-z0-9]+]] = %a, [[newer:%[a-z0-9]+]] = %b)
  // CHECK-NEXT:      arith.subf [[newer]], [[older]] : f64
  // CHECK:         [[d:%[0-9]+|%left]] = arith.subf [[v]], [[u]] : f64
  // CHECK-NEXT:    simt.store [[d]]
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64, %c: f64, %sign: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %a, %v = %b) -> (f64, f64) : i32 {
      %d = arith.subf %v, %u : f64
      %p = math.fma %d, %d, %c : f64
      %w = simt.load %field[%i + 0] : f64
      %e = arith.subf %v, %w : f64
      %q = math.fma %e, %e, %p : f64
      simt.store %q to %field[%i + 0]
      scf.yield %v, %w : f64, f64
    }
    %left = arith.subf %v0, %u0 : f64
    simt.store %left to %field[%n + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "sign_after"} : () -> ()

  // Nothing is computed from an unset value.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64):
  // CHECK:         %unset = simt.unset : f64
  // CHECK-NEXT:    scf.for %i = %zero to %n step %one iter_args([[d:%[a-z0-9]+]] = %unset, %{{[a-z0-9]+}} = %a)
  // CHECK-NEXT:      math.fma [[d]], [[d]]
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %unset = simt.unset : f64
    %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %unset, %v = %a) -> (f64, f64) : i32 {
      %d = arith.subf %v, %u : f64
      %p = math.fma %d, %d, %a : f64
      %w = simt.load %field[%i + 0] : f64
      %e = arith.subf %w, %v : f64
      %q = math.fma %e, %e, %p : f64
      simt.store %q to %field[%i + 0]
      scf.yield %v, %w : f64, f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "unset"} : () -> ()

  // Values made from the difference may come later.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64, %b: f64):
  // CHECK:         [[d:%[0-9]+]] = arith.subf %b, %a : f64
  // CHECK-NEXT:    [[p:%[0-9]+]] = math.absf [[d]] : f64
  // CHECK-NEXT:    scf.for %i = %zero to %n step %one iter_args([[rise:%[a-z0-9]+]] = [[p]], [[v:%[a-z0-9]+]] = %b)
  // CHECK-NEXT:      [[w:%[a-z0-9]+]] = simt.load
  // CHECK-NEXT:      [[e:%[a-z0-9]+]] = arith.subf [[w]], [[v]] : f64
  // CHECK-NEXT:      [[q:%[a-z0-9]+]] = math.absf [[e]] : f64
  // CHECK-NEXT:      arith.addf [[rise]], [[q]] : f64
  // CHECK-NEXT:      simt.store
  // CHECK-NEXT:      scf.yield [[q]], [[w]] : f64, f64
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %a, %v = %b) -> (f64, f64) : i32 {
      %d = arith.subf %v, %u : f64
      %p = math.absf %d : f64
      %w = simt.load %field[%i + 0] : f64
      %e = arith.subf %w, %v : f64
      %q = math.absf %e : f64
      %s = arith.addf %p, %q : f64
      simt.store %s to %field[%i + 0]
      scf.yield %v, %w : f64, f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "chain"} : () -> ()

  // Further readers keep the plane, in the loop and behind; and a difference is not reversed if its sign
  // matters.
  // CHECK-LABEL: ^bb0(%n: i32, %field: memref<4096xf64, 1 : i64>, %a: f64, %b: f64):
  // CHECK:         scf.for {{.*}} iter_args(%u = %a, %v = %b)
  // CHECK-NEXT:      arith.subf %v, %u : f64
  // CHECK:         scf.for {{.*}} iter_args(%x = %a, %y = %b)
  // CHECK-NEXT:      arith.subf %y, %x : f64
  // CHECK:         scf.for {{.*}} iter_args(%r = %a, %s = %b)
  // CHECK-NEXT:      arith.subf %s, %r : f64
  // CHECK:         "gpu.return"
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %a, %v = %b) -> (f64, f64) : i32 {
      %d = arith.subf %v, %u : f64
      %p = math.fma %d, %d, %u : f64
      %w = simt.load %field[%i + 0] : f64
      %e = arith.subf %w, %v : f64
      %q = math.fma %e, %e, %p : f64
      simt.store %q to %field[%i + 0]
      scf.yield %v, %w : f64, f64
    }
    %x0, %y0 = scf.for %i = %zero to %n step %one iter_args(%x = %a, %y = %b) -> (f64, f64) : i32 {
      %d = arith.subf %y, %x : f64
      %p = math.fma %d, %d, %a : f64
      %w = simt.load %field[%i + 0] : f64
      %e = arith.subf %w, %y : f64
      %q = math.fma %e, %e, %p : f64
      simt.store %q to %field[%i + 0]
      scf.yield %y, %w : f64, f64
    }
    simt.store %x0 to %field[%n + 0]
    %r0, %s0 = scf.for %i = %zero to %n step %one iter_args(%r = %a, %s = %b) -> (f64, f64) : i32 {
      %d = arith.subf %s, %r : f64
      %p = arith.addf %d, %a : f64
      %w = simt.load %field[%i + 0] : f64
      %e = arith.subf %s, %w : f64
      %q = arith.addf %e, %p : f64
      simt.store %q to %field[%i + 0]
      scf.yield %s, %w : f64, f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "kept"} : () -> ()
}) : () -> ()
