// RUN: xdsl-opt %s -t ptx | filecheck %s

// Rounding to whole numbers, shifts by amounts that are no constants, and counts of bits.

// A name invalid in PTX is spelled in valid letters; a boolean argument is a byte.
// CHECK:      .visible .entry named$2e$k(
// CHECK:      .param .u8 named$2e$k_param_5
// CHECK:      ld.param.u8 [[byte:%r[0-9]+]], [named$2e$k_param_5];
// CHECK-NEXT: setp.ne.u32 %p{{[0-9]+}}, [[byte]], 0;
llvm.func @"named.k"(%p: !llvm.ptr<1>, %a: f64, %s: f32, %i: i32, %l: i64, %on: i1) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32>, nvvm.minctasm = 1 : i32} {
  // CHECK:      cvt.rmi.f64.f64
  %0 = math.floor %a : f64
  // CHECK-NEXT: cvt.rpi.f32.f32
  %1 = math.ceil %s : f32
  // CHECK-NEXT: cvt.rzi.f64.f64
  %2 = math.trunc %a : f64
  // CHECK-NEXT: cvt.rni.f32.f32
  %3 = math.roundeven %s : f32
  // Adding a bit less than 0.5 moves a number beyond its nearest integer; then the fraction is cut off.
  // CHECK-NEXT: copysign.f64 [[half:%fd[0-9]+]], [[a:%fd[0-9]+]], 0d3FDFFFFFFFFFFFFF;
  // CHECK-NEXT: add.rn.f64 [[sum:%fd[0-9]+]], [[a]], [[half]];
  // CHECK-NEXT: cvt.rzi.f64.f64 %fd{{[0-9]+}}, [[sum]];
  %4 = math.round %a : f64
  // CHECK-NEXT: copysign.f32 %f{{[0-9]+}}, %f{{[0-9]+}}, 0f3EFFFFFF;
  // CHECK-NEXT: add.rn.f32
  // CHECK-NEXT: cvt.rzi.f32.f32
  %5 = math.round %s : f32

  // CHECK-NEXT: shl.b32 %r{{[0-9]+}}, [[i:%r[0-9]+]], [[i]];
  %6 = arith.shli %i, %i : i32
  // CHECK-NEXT: shr.s32 %r{{[0-9]+}}, [[i]], [[i]];
  %7 = arith.shrsi %i, %i : i32
  // The amount has 32 bits; by 64 and more all bits leave.
  // CHECK-NEXT: min.u64 [[least:%rd[0-9]+]], [[l:%rd[0-9]+]], 64;
  // CHECK-NEXT: cvt.u32.u64 [[amount:%r[0-9]+]], [[least]];
  // CHECK-NEXT: shl.b64 %rd{{[0-9]+}}, [[l]], [[amount]];
  %8 = arith.shli %l, %l : i64
  %far = arith.constant 1099511627776 : i64
  // CHECK-NEXT: shr.u64 %rd{{[0-9]+}}, [[l]], 64;
  %9 = arith.shrui %l, %far : i64

  // CHECK-NEXT: popc.b32 %r{{[0-9]+}}, [[i]];
  %10 = math.ctpop %i : i32
  // CHECK-NEXT: clz.b64 [[zeros:%r[0-9]+]], [[l]];
  // CHECK-NEXT: cvt.u64.u32 %rd{{[0-9]+}}, [[zeros]];
  %11 = math.ctlz %l : i64
  // CHECK-NEXT: brev.b32 [[reverse:%r[0-9]+]], [[i]];
  // CHECK-NEXT: clz.b32 %r{{[0-9]+}}, [[reverse]];
  %12 = math.cttz %i : i32
  // CHECK-NEXT: abs.s32
  %13 = math.absi %i : i32
  // CHECK-NEXT: cvt.rzi.u32.f32
  %14 = arith.fptoui %s : f32 to i32
  llvm.return
}
