// RUN: xdsl-opt %s -p expand-division | filecheck %s
// RUN: xdsl-opt %s -p expand-division | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s -p expand-division | filecheck %s --check-prefix=ONCE

// Quotients and roots become multiply-adds, and special cases share a branch.

"gpu.module"() <{sym_name = "kernels"}> ({
  // Two cells of a row: the root's operand is looked at, the quotient's is known to be ordinary then but
  // for a fraction of ones, and about one by it is what the root was made from. The sum behind the quotient needs no copy: it moves behind the branch.
  // CHECK-LABEL: ^bb0(%field: memref<4096xf64, 1 : i64>, %i: i32, %x: f64, %y: f64)
  // CHECK-NOT:     arith.divf
  // CHECK-NOT:     math.sqrt
  // CHECK:         %{{[0-9]+}}, [[word:%[a-z0-9]+]] = simt.split %x : f64
  // CHECK-NEXT:    [[distance:%[a-z0-9]+]] = arith.addi [[word]], %{{[a-z0-9]+}} : i32
  // CHECK-NEXT:    [[first:%[a-z0-9]+]] = arith.cmpi ult, [[distance]], %{{[a-z0-9]+}} : i32
  // CHECK-NEXT:    [[guess:%[a-z0-9]+]] = simt.reciprocal_root %x : f64
  // CHECK-NEXT:    arith.mulf [[guess]], [[guess]] : f64
  // CHECK-COUNT-2: math.fma
  // CHECK:         [[about:%[a-z0-9]+]] = math.fma %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, [[guess]] : f64
  // CHECK:         [[half:%[a-z0-9]+]] = arith.mulf [[about]], %{{[a-z0-9]+}} : f64
  // CHECK-NEXT:    [[root:%[a-z0-9]+]] = math.fma %{{[a-z0-9]+}}, [[half]], %{{[a-z0-9]+}} : f64
  // CHECK-NEXT:    [[low:%[a-z0-9]+]], %{{[a-z0-9]+}} = simt.split [[root]] : f64
  // CHECK-NEXT:    [[second:%[a-z0-9]+]] = arith.cmpi ne, [[low]], %{{[a-z0-9]+}} : i32
  // CHECK-NEXT:    [[against:%[a-z0-9]+]] = arith.negf [[root]] : f64
  // CHECK-NEXT:    [[error:%[a-z0-9]+]] = math.fma [[against]], [[about]], %{{[a-z0-9]+}} : f64
  // CHECK-NEXT:    [[quick:%[a-z0-9]+]] = math.fma [[about]], [[error]], [[about]] : f64
  // CHECK-NOT:     {{math.fma|simt.reciprocal %}}
  // CHECK-NOT:     simt.all
  // CHECK:         simt.reciprocal_root %y : f64
  // CHECK:         arith.andi [[first]], [[second]] : i1
  // CHECK:         [[together:%[a-z0-9]+]] = simt.all %{{[a-z0-9]+}} : i1
  // CHECK-NEXT:    [[one:%[a-z0-9]+]], [[other:%[a-z0-9]+]] = scf.if [[together]] -> (f64, f64) {
  // CHECK-NEXT:      scf.yield [[quick]], %{{[a-z0-9]+}} : f64, f64
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      [[small:%[a-z0-9]+]] = arith.cmpf olt, %x, %{{[a-z0-9]+}} : f64
  // CHECK-NEXT:      [[large:%[a-z0-9]+]] = arith.cmpf oge, %x, %{{[a-z0-9]+}} : f64
  // CHECK:           [[scaled:%[a-z0-9]+]] = arith.mulf %x, %{{[a-z0-9]+}} : f64
  // CHECK-NEXT:      [[start:%[a-z0-9]+]] = simt.reciprocal_root [[scaled]] : f64
  // CHECK:           arith.select %{{[a-z0-9]+}}, %x, [[start]] : f64
  // CHECK:           [[q:%[a-z0-9]+]] = arith.select %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, [[start]] : f64
  // CHECK:           [[s:%[a-z0-9]+]] = simt.reciprocal_root
  // CHECK:           arith.select %{{[a-z0-9]+}}, %y, [[s]] : f64
  // CHECK:           [[p:%[a-z0-9]+]] = arith.select %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, [[s]] : f64
  // CHECK-NEXT:      scf.yield [[q]], [[p]] : f64, f64
  // CHECK-NEXT:    }
  // CHECK-NEXT:    %a = arith.addf [[one]], %x : f64
  // CHECK-NEXT:    %b = arith.addf [[other]], %y : f64
  // CHECK-NEXT:    simt.store %a, %b to %field[%i + 0]
  // ONCE:          simt.all
  // ONCE-NOT:      simt.all
  // ONCE:          "gpu.return"
  "gpu.func"() <{function_type = (memref<4096xf64, 1>, i32, f64, f64) -> (), kernel}> ({
  ^bb0(%field: memref<4096xf64, 1>, %i: i32, %x: f64, %y: f64):
    %unit = arith.constant 1.0 : f64
    %r = math.sqrt %x : f64
    %q = arith.divf %unit, %r : f64
    %a = arith.addf %q, %x : f64
    %s = math.sqrt %y : f64
    %p = arith.divf %unit, %s : f64
    %b = arith.addf %p, %y : f64
    simt.store %a, %b to %field[%i + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "row"} : () -> ()

  // A shuffle comes before the division of its result, so there are two branches. In FP32 the bits of a
  // number are a word, the sign is masked, and an ordinary constant is not tested.
  // CHECK-LABEL: ^bb0(%field: memref<4096xf32, 1 : i64>
  // CHECK:         [[bits:%[a-z0-9]+]] = arith.bitcast %x : f32 to i32
  // CHECK-NEXT:    arith.andi [[bits]], %{{[a-z0-9]+}} : i32
  // CHECK:         simt.reciprocal %x : f32
  // CHECK-NOT:     arith.bitcast
  // CHECK:         simt.all
  // CHECK-NEXT:    [[first:%[a-z0-9]+]] = scf.if
  // CHECK:         %left = simt.shuffle [[first]] delta -1 : f32
  // CHECK-NEXT:    [[next:%[a-z0-9]+]] = arith.bitcast %left : f32 to i32
  // CHECK-NOT:     arith.andi [[next]]
  // CHECK:         simt.reciprocal_root %left : f32
  // CHECK:         simt.all
  // CHECK:         [[wide:%[a-z0-9]+]] = arith.extf %left : f32 to f64
  // CHECK-NEXT:    [[about:%[a-z0-9]+]] = simt.reciprocal_root [[wide]] : f64
  // CHECK:         [[root:%[a-z0-9]+]] = arith.select %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f32
  // CHECK:         [[divisor:%[a-z0-9]+]] = arith.extf [[root]] : f32 to f64
  // CHECK-NEXT:    simt.reciprocal [[divisor]] : f64
  // CHECK-NOT:     math.rsqrt
  // CHECK:         "gpu.return"
  "gpu.func"() <{function_type = (memref<4096xf32, 1>, i32, f32) -> (), kernel}> ({
  ^bb0(%field: memref<4096xf32, 1>, %i: i32, %given: f32):
    %three = arith.constant 3.0 : f32
    %x = arith.addf %given, %given : f32
    %q = arith.divf %three, %x : f32
    %left = simt.shuffle %q delta -1 : f32
    %r = math.rsqrt %left : f32
    simt.store %r to %field[%i + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "lanes"} : () -> ()

  // Of what is a square and a positive number neither the sign nor the lower end is in question. In FP32 the step from the
  // root's guess is rounded upwards, and has no special fraction.
  // CHECK-LABEL: ^bb0(%field: memref<4096xf32, 1 : i64>, %i: i32, %d: f32, %e: f32):
  // CHECK:         %x = math.fma %d, %d, %c : f32
  // CHECK-NEXT:    [[bits:%[a-z0-9]+]] = arith.bitcast %x : f32 to i32
  // CHECK-NEXT:    [[below:%[a-z0-9]+]] = arith.cmpi ult, [[bits]], %{{[a-z0-9]+}} : i32
  // CHECK-NEXT:    [[guess:%[a-z0-9]+]] = simt.reciprocal_root %x : f32
  // CHECK:         [[root:%[a-z0-9]+]] = math.fma
  // CHECK:         [[against:%[a-z0-9]+]] = arith.negf [[root:%[a-z0-9]+]] : f32
  // CHECK-NEXT:    [[error:%[a-z0-9]+]] = math.fma [[against]], [[guess]], %{{[a-z0-9]+}} : f32
  // CHECK-NEXT:    [[more:%[a-z0-9]+]] = simt.fma_up [[error]], [[error]], [[error]] : f32
  // CHECK-NEXT:    [[quick:%[a-z0-9]+]] = math.fma [[guess]], [[more]], [[guess]] : f32
  // A second division after little other arithmetic shares the branch: the exact side repeats the arithmetic.
  // CHECK-NEXT:    %y = math.fma [[quick]], [[quick]], %n : f32
  // CHECK-NEXT:    [[second:%[a-z0-9]+]] = arith.bitcast %y : f32 to i32
  // CHECK-NEXT:    arith.addi [[second]]
  // CHECK-NOT:     simt.all
  // CHECK:         [[both:%[a-z0-9]+]] = arith.andi [[below]], %{{[a-z0-9]+}} : i1
  // CHECK-NEXT:    [[together:%[a-z0-9]+]] = simt.all [[both]] : i1
  // CHECK-NEXT:    %q, %s = scf.if [[together]] -> (f32, f32) {
  // CHECK-NEXT:      scf.yield [[quick]], %{{[a-z0-9]+}} : f32, f32
  // CHECK:         } else {
  // CHECK:           math.fma [[slow:%[0-9]+]], [[slow]], %n : f32
  // CHECK-NOT:     simt.all
  // CHECK:         simt.store %q, %s to %field
  "gpu.func"() <{function_type = (memref<4096xf32, 1>, i32, f32, f32) -> (), kernel}> ({
  ^bb0(%field: memref<4096xf32, 1>, %i: i32, %d: f32, %e: f32):
    %unit = arith.constant 1.0 : f32
    %c = arith.constant 0.1 : f32
    %n = arith.constant -0.1 : f32
    %x = math.fma %d, %d, %c : f32
    %r = math.sqrt %x : f32
    %q = arith.divf %unit, %r : f32
    %y = math.fma %q, %q, %n : f32
    %s = math.sqrt %y : f32
    simt.store %q, %s to %field[%i + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "squares"} : () -> ()

  // Cells outside of the bounds are taken from memory between two levels: the levels share a branch all the same, and the
  // exact side takes the cells again.
  // CHECK-LABEL: ^bb0(%field: memref<4096xf32, 1 : i64>, %given: memref<4096xf32, 1 : i64>
  // CHECK-NOT:     simt.all
  // CHECK:         [[taken:%[a-z0-9]+]] = simt.override %{{[a-z0-9]+}} from %given[%i + 0] mask %m
  // CHECK-NOT:     simt.all
  // CHECK:         [[sum:%[a-z0-9]+]] = arith.addf [[taken]], %x : f32
  // CHECK:         simt.all
  // CHECK-NEXT:    [[last:%[a-z0-9]+]] = scf.if
  // CHECK:         } else {
  // CHECK:           simt.override %{{[a-z0-9]+}} from %given[%i + 0] mask %m
  // CHECK-NOT:     simt.all
  // CHECK:         simt.store [[last]] to %field
  "gpu.func"() <{function_type = (memref<4096xf32, 1>, memref<4096xf32, 1>, i32, i1, f32) -> (), kernel}> ({
  ^bb0(%field: memref<4096xf32, 1>, %given: memref<4096xf32, 1>, %i: i32, %m: i1, %x: f32):
    %by = arith.constant 118.0 : f32
    %q = arith.divf %x, %by : f32
    %o = simt.override %q from %given[%i + 0] mask %m
    %s = arith.addf %o, %x : f32
    %p = arith.divf %s, %by : f32
    simt.store %p to %field[%i + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "overridden"} : () -> ()

  // What may be approximate has no branch. In FP64 the guess is refined where its operand is normal; a divisor's
  // reciprocal serves all its quotients. In FP32 the guess is all.
  // CHECK-LABEL: ^bb0(%field: memref<4096xf64, 1 : i64>, %i: i32, %x: f64, %z: f32, %single
  // CHECK-NOT:     simt.all
  // CHECK:         [[guess:%[a-z0-9]+]] = simt.reciprocal %x : f64
  // CHECK-NEXT:    [[against:%[a-z0-9]+]] = arith.negf %x : f64
  // CHECK-NEXT:    [[error:%[a-z0-9]+]] = math.fma [[against]], [[guess]]
  // CHECK-NEXT:    [[weight:%[a-z0-9]+]] = math.fma [[error]], [[error]], [[error]]
  // CHECK-NEXT:    [[refined:%[a-z0-9]+]] = math.fma [[guess]], [[weight]], [[guess]]
  // CHECK-NEXT:    {{.*}} = simt.split %x : f64
  // CHECK-NEXT:    arith.andi
  // CHECK-NEXT:    arith.addi
  // CHECK-NEXT:    [[normal:%[a-z0-9]+]] = arith.cmpi ult
  // CHECK-NEXT:    [[one:%[a-z0-9]+]] = arith.select [[normal]], [[refined]], [[guess]] : f64
  // CHECK-NEXT:    [[three:%[a-z0-9]+]] = arith.mulf %{{[a-z0-9]+}}, [[one]] : f64
  // CHECK-NOT:     simt.reciprocal %x
  // CHECK:         [[root:%[a-z0-9]+]] = simt.reciprocal_root %x : f64
  // CHECK-COUNT-3: math.fma
  // CHECK-NOT:     arith.andi
  // CHECK:         [[r:%[a-z0-9]+]] = arith.select %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, [[root]] : f64
  // CHECK:         simt.store [[one]], [[three]] to %field[%i + 0]
  // CHECK-NEXT:    simt.store [[r]] to %field[%i + 2]
  // CHECK-NEXT:    [[s:%[a-z0-9]+]] = simt.reciprocal_root %z : f32
  // CHECK-NEXT:    simt.store [[s]] to %single
  "gpu.func"() <{function_type = (memref<4096xf64, 1>, i32, f64, f32, memref<4096xf32, 1>) -> (), kernel}> ({
  ^bb0(%field: memref<4096xf64, 1>, %i: i32, %x: f64, %z: f32, %single: memref<4096xf32, 1>):
    %unit = arith.constant 1.0 : f64
    %three = arith.constant 3.0 : f64
    %p = arith.divf %unit, %x fastmath<afn> : f64
    %q = arith.divf %three, %x fastmath<afn> : f64
    %r = math.rsqrt %x fastmath<afn> : f64
    simt.store %p, %q to %field[%i + 0]
    simt.store %r to %field[%i + 2]
    %s = math.rsqrt %z fastmath<afn> : f32
    simt.store %s to %single[%i + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "approximate"} : () -> ()

  // Inside a loop its branch stays there, and integers are left alone. The reciprocal of an argument is made once, before
  // the loop, and a quotient by it is a product and two fused multiply-adds.
  // CHECK-LABEL: ^bb0(%n: i32
  // CHECK:         [[guess:%[a-z0-9]+]] = simt.reciprocal %x : f64
  // CHECK-COUNT-4: math.fma
  // CHECK:         [[inverse:%[a-z0-9]+]] = math.fma
  // CHECK:         scf.for
  // CHECK:           arith.divsi
  // CHECK-NOT:     simt.reciprocal
  // CHECK:           [[first:%[a-z0-9]+]] = arith.mulf %u, [[inverse]] : f64
  // CHECK-NEXT:      [[against:%[a-z0-9]+]] = arith.negf %u : f64
  // CHECK-NEXT:      [[rest:%[a-z0-9]+]] = math.fma [[first]], %x, [[against]] : f64
  // CHECK-NEXT:      [[turned:%[a-z0-9]+]] = arith.negf [[inverse]] : f64
  // CHECK-NEXT:      math.fma [[rest]], [[turned]], [[first]] : f64
  // CHECK:           simt.all
  // CHECK-NEXT:      [[q:%[a-z0-9]+]] = scf.if
  // CHECK:           scf.yield [[q]] : f64
  "gpu.func"() <{function_type = (i32, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %x: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %last = scf.for %i = %zero to %n step %one iter_args(%u = %x) -> (f64) : i32 {
      %q = arith.divf %u, %x : f64
      %k = arith.divsi %i, %n : i32
      scf.yield %q : f64
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "loop"} : () -> ()
}) : () -> ()
