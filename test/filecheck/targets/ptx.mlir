// RUN: xdsl-opt %s -t ptx | filecheck %s
// RUN: xdsl-opt %s -t 'ptx{arch=sm_80}' | filecheck %s --check-prefix=AMPERE
// RUN: xdsl-opt %s -t 'ptx{arch=sm_90 version="8.5"}' | filecheck %s --check-prefix=NEWER
// RUN: xdsl-opt %s -t ptx | filecheck %s --check-prefix=EXACT

// Every operation of a kernel and its PTX. Rounding is explicit, so that the assembler fuses nothing
// by itself; constants are operands, and offsets are folded into addresses.

// CHECK:       .version {{[0-9]+\.[0-9]+}}
// CHECK-NEXT:  .target sm_90
// CHECK-NEXT:  .address_size 64
// CHECK:       .extern .shared .align 128 .b8 dynamic_shared[];
// AMPERE:      .version 7.4
// AMPERE-NEXT: .target sm_80
// NEWER:       .version 8.5
// NEWER-NEXT:  .target sm_90

// No sum, difference, product or quotient of floats without its rounding.
// EXACT-NOT:   {{(add|sub|mul|div|fma|sqrt)\.f(32|64)}}

// CHECK-LABEL: .visible .entry floats(
// CHECK-NEXT:    .param .f64 floats_param_0,
// CHECK-NEXT:    .param .f64 floats_param_1,
// CHECK-NEXT:    .param .f32 floats_param_2
// CHECK-NEXT:  )
// CHECK-NEXT:  .maxntid 128, 1, 1
// CHECK-NEXT:  .minnctapersm 2
// CHECK-NEXT:  {
// CHECK:         ld.param.f64 [[a:%fd[0-9]+]], [floats_param_0];
// CHECK-NEXT:    ld.param.f64 [[b:%fd[0-9]+]], [floats_param_1];
// CHECK-NEXT:    ld.param.f32 [[s:%f[0-9]+]], [floats_param_2];
llvm.func @floats(%a: f64, %b: f64, %s: f32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
  // CHECK-NEXT: add.rn.f64 %fd{{[0-9]+}}, [[a]], [[b]];
  %0 = arith.addf %a, %b : f64
  // CHECK-NEXT: sub.rn.f64
  %1 = arith.subf %a, %b : f64
  // CHECK-NEXT: mul.rn.f64
  %2 = arith.mulf %a, %b : f64
  // CHECK-NEXT: div.rn.f64
  %3 = arith.divf %a, %b : f64
  // CHECK-NEXT: neg.f64
  %4 = arith.negf %a : f64
  // CHECK-NEXT: fma.rn.f64 %fd{{[0-9]+}}, [[a]], [[b]], [[a]];
  %5 = math.fma %a, %b, %a : f64
  // CHECK-NEXT: abs.f64
  %6 = math.absf %a : f64
  // CHECK-NEXT: sqrt.rn.f64
  %7 = math.sqrt %a : f64
  // CHECK-NEXT: sqrt.rn.f64 [[root:%fd[0-9]+]], [[a]];
  // CHECK-NEXT: rcp.rn.f64 %fd{{[0-9]+}}, [[root]];
  %8 = math.rsqrt %a : f64
  // What Newton's method starts from, and the bits of a number.
  // CHECK-NEXT: rcp.approx.ftz.f64 %fd{{[0-9]+}}, [[a]];
  %near = simt.reciprocal %a : f64
  // CHECK-NEXT: rsqrt.approx.ftz.f32 %f{{[0-9]+}}, [[s]];
  %near_root = simt.reciprocal_root %s : f32
  // CHECK-NEXT: fma.rp.f32 %f{{[0-9]+}}, [[s]], [[s]], [[s]];
  %up = simt.fma_up %s, %s, %s : f32
  // CHECK-NEXT: mov.b32 %r{{[0-9]+}}, [[s]];
  %word = arith.bitcast %s : f32 to i32
  // The sign of %b comes first.
  // CHECK-NEXT: copysign.f64 %fd{{[0-9]+}}, [[b]], [[a]];
  %9 = math.copysign %a, %b : f64
  // CHECK-NEXT: max.f64
  %10 = arith.maxnumf %a, %b : f64
  // CHECK-NEXT: min.f64
  %11 = arith.minnumf %a, %b : f64
  // PTX has a maximum that is NaN where an operand is for 4 bytes only.
  // CHECK-NEXT: setp.nan.f64 [[nan:%p[0-9]+]], [[a]], [[b]];
  // CHECK-NEXT: max.f64 [[larger:%fd[0-9]+]], [[a]], [[b]];
  // CHECK-NEXT: add.rn.f64 [[sum:%fd[0-9]+]], [[a]], [[b]];
  // CHECK-NEXT: selp.f64 %fd{{[0-9]+}}, [[sum]], [[larger]], [[nan]];
  %12 = arith.maximumf %a, %b : f64
  // CHECK-NEXT: min.NaN.f32 %f{{[0-9]+}}, [[s]], [[s]];
  %13 = arith.minimumf %s, %s : f32

  // Constants are written bit by bit.
  %half = arith.constant 0.5 : f64
  %third = arith.constant 0x3EAAAAAB : f32
  // CHECK-NEXT: mul.rn.f64 %fd{{[0-9]+}}, [[a]], 0d3FE0000000000000;
  %14 = arith.mulf %a, %half : f64
  // CHECK-NEXT: mul.rn.f32 %f{{[0-9]+}}, [[s]], 0f3EAAAAAB;
  %15 = arith.mulf %s, %third : f32

  // CHECK-NEXT: setp.lt.f64 [[less:%p[0-9]+]], [[a]], [[b]];
  %less = arith.cmpf olt, %a, %b : f64
  // CHECK-NEXT: setp.neu.f64
  %16 = arith.cmpf une, %a, %b : f64
  // CHECK-NEXT: setp.num.f64
  %17 = arith.cmpf ord, %a, %b : f64
  // CHECK-NEXT: setp.ne.u32 %p{{[0-9]+}}, 1, 0;
  %18 = arith.cmpf true, %a, %b : f64
  // CHECK-NEXT: selp.f64 %fd{{[0-9]+}}, [[a]], [[b]], [[less]];
  %19 = arith.select %less, %a, %b : f64

  // CHECK-NEXT: cvt.f64.f32
  %20 = arith.extf %s : f32 to f64
  // CHECK-NEXT: cvt.rn.f32.f64
  %21 = arith.truncf %a : f64 to f32
  // A NaN becomes 0, as it does where PTX makes 32 bits of 32.
  // CHECK-NEXT: cvt.rzi.s32.f64 [[cut:%r[0-9]+]], [[a]];
  // CHECK-NEXT: setp.nan.f64 [[nan:%p[0-9]+]], [[a]], [[a]];
  // CHECK-NEXT: selp.b32 [[i:%r[0-9]+]], 0, [[cut]], [[nan]];
  %i = arith.fptosi %a : f64 to i32
  // CHECK-NEXT: cvt.rn.f32.s32 %f{{[0-9]+}}, [[i]];
  %22 = arith.sitofp %i : i32 to f32
  // CHECK-NEXT: cvt.rn.f64.u32 %fd{{[0-9]+}}, [[i]];
  %23 = arith.uitofp %i : i32 to f64
  // The bits are chosen: NVIDIA's assembler loses the sign of zero in a choice of 1.0 and -0.0.
  // CHECK-NEXT: selp.b32 [[one:%r[0-9]+]], 0x3F800000, 0x00000000, [[less]];
  // CHECK-NEXT: mov.b32 %f{{[0-9]+}}, [[one]];
  %24 = arith.uitofp %less : i1 to f32
  // CHECK-NEXT: ret;
  // CHECK-NEXT: }
  llvm.return
}

// CHECK-LABEL: .visible .entry integers(
// CHECK-NEXT:    .param .u32 integers_param_0,
// CHECK-NEXT:    .param .u64 integers_param_1
// CHECK:         ld.param.u32 [[n:%r[0-9]+]]
// CHECK-NEXT:    ld.param.u64 [[w:%rd[0-9]+]]
llvm.func @integers(%n: i32, %w: i64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
  %three = arith.constant -3 : i32
  // CHECK-NEXT: add.s32 %r{{[0-9]+}}, [[n]], -3;
  %0 = arith.addi %n, %three : i32
  // CHECK-NEXT: sub.s32
  %1 = arith.subi %n, %n : i32
  // CHECK-NEXT: mul.lo.s64
  %2 = arith.muli %w, %w : i64
  // CHECK-NEXT: div.s32
  %3 = arith.divsi %n, %n : i32
  // CHECK-NEXT: rem.s32
  %4 = arith.remsi %n, %n : i32
  // CHECK-NEXT: max.s32
  %5 = arith.maxsi %n, %n : i32
  // CHECK-NEXT: min.s32
  %6 = arith.minsi %n, %n : i32
  // CHECK-NEXT: div.u32
  %7 = arith.divui %n, %n : i32
  // Quotients by known numbers: a shift, or a product and a shift; 7 takes more than a word.
  %eight = arith.constant 8 : i32
  %ten = arith.constant 10 : i32
  %seven = arith.constant 7 : i32
  // CHECK-NEXT: shr.u32 %r{{[0-9]+}}, [[n]], 3;
  %by8 = arith.divui %n, %eight {simt.by_product} : i32
  // CHECK-NEXT: mul.hi.u32 [[high:%r[0-9]+]], [[n]], 3435973837;
  // CHECK-NEXT: shr.u32 %r{{[0-9]+}}, [[high]], 3;
  %by10 = arith.divui %n, %ten {simt.by_product} : i32
  // CHECK-NEXT: mul.hi.u32 [[high7:%r[0-9]+]], [[n]], 613566757;
  // CHECK-NEXT: sub.s32 [[left:%r[0-9]+]], [[n]], [[high7]];
  // CHECK-NEXT: shr.u32 [[half:%r[0-9]+]], [[left]], 1;
  // CHECK-NEXT: add.s32 [[sum:%r[0-9]+]], [[half]], [[high7]];
  // CHECK-NEXT: shr.u32 %r{{[0-9]+}}, [[sum]], 2;
  %by7 = arith.divui %n, %seven {simt.by_product} : i32
  // CHECK-NEXT: and.b32 %r{{[0-9]+}}, [[n]], 7;
  %of8 = arith.remui %n, %eight {simt.by_product} : i32
  // CHECK-NEXT: mul.hi.u32 [[high10:%r[0-9]+]], [[n]], 3435973837;
  // CHECK-NEXT: shr.u32 [[q:%r[0-9]+]], [[high10]], 3;
  // CHECK-NEXT: mul.lo.s32 [[whole:%r[0-9]+]], [[q]], 10;
  // CHECK-NEXT: sub.s32 %r{{[0-9]+}}, [[n]], [[whole]];
  %of10 = arith.remui %n, %ten {simt.by_product} : i32
  // CHECK-NEXT: rem.u64
  %8 = arith.remui %w, %w : i64
  // CHECK-NEXT: shr.u32
  %9 = arith.shrui %n, %n : i32
  // CHECK-NEXT: max.u32
  %10 = arith.maxui %n, %n : i32
  // CHECK-NEXT: min.u32
  %11 = arith.minui %n, %n : i32
  // CHECK-NEXT: and.b32
  %12 = arith.andi %n, %n : i32
  // CHECK-NEXT: or.b64
  %13 = arith.ori %w, %w : i64
  // CHECK-NEXT: shl.b32
  %14 = arith.shli %n, %n : i32
  // CHECK-NEXT: setp.eq.b32 [[p:%p[0-9]+]], [[n]], -3;
  %p = arith.cmpi eq, %n, %three : i32
  // CHECK-NEXT: setp.le.s64 [[q:%p[0-9]+]], [[w]], [[w]];
  %q = arith.cmpi sle, %w, %w : i64
  // CHECK-NEXT: setp.lt.u32
  %15 = arith.cmpi ult, %n, %n : i32
  // CHECK-NEXT: xor.pred %p{{[0-9]+}}, [[p]], [[q]];
  %16 = arith.xori %p, %q : i1
  // A mask that is chosen by a mask.
  // CHECK-NEXT: and.pred [[kept:%p[0-9]+]], [[q]], [[p]];
  // CHECK-NEXT: not.pred [[off:%p[0-9]+]], [[p]];
  // CHECK-NEXT: and.pred [[off]], [[p]], [[off]];
  // CHECK-NEXT: or.pred %p{{[0-9]+}}, [[kept]], [[off]];
  %17 = arith.select %p, %q, %p : i1
  // CHECK-NEXT: selp.s32 %r{{[0-9]+}}, [[n]], -3, [[p]];
  %18 = arith.select %p, %n, %three : i32
  // CHECK-NEXT: selp.b32 %r{{[0-9]+}}, 1, 0, [[p]];
  %19 = arith.extui %p : i1 to i32
  // CHECK-NEXT: cvt.u64.u32
  %20 = arith.extui %n : i32 to i64
  // CHECK-NEXT: cvt.s64.s32
  %21 = arith.extsi %n : i32 to i64
  // CHECK-NEXT: cvt.s32.s64
  %22 = arith.trunci %w : i64 to i32
  // An index has 64 bits, so the cast keeps the register.
  %23 = arith.index_cast %w : i64 to index
  // CHECK-NEXT: add.s64 %rd{{[0-9]+}}, [[w]], [[w]];
  %24 = arith.addi %23, %23 : index
  // CHECK-NEXT: ret;
  llvm.return
}

// Pointers to global memory are 64 bits wide, those to shared memory 32.
// CHECK-LABEL: .visible .entry memory(
// CHECK:         ld.param.u64 [[a:%rd[0-9]+]], [memory_param_0];
// CHECK-NEXT:    cvta.to.global.u64 [[a]], [[a]];
// CHECK-NEXT:    ld.param.u32 [[i:%r[0-9]+]]
// CHECK-NEXT:    ld.param.u64 [[w:%rd[0-9]+]]
llvm.func @memory(%a: !llvm.ptr<1>, %i: i32, %w: i64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
  %zero = arith.constant 0 : i32
  // CHECK-NEXT: setp.lt.s32 [[m:%p[0-9]+]], [[i]], 0;
  %m = arith.cmpi slt, %i, %zero : i32
  // CHECK-NEXT: mad.wide.s32 [[p:%rd[0-9]+]], [[i]], 8, [[a]];
  %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f64
  // CHECK-NEXT: mad.lo.s64 %rd{{[0-9]+}}, [[w]], 4, [[a]];
  %far = llvm.getelementptr %a[%w] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  // CHECK-NEXT: ld.global.f64 [[x:%fd[0-9]+]], {{\[}}[[p]]+-16];
  %x = simt.load %p[-2] : f64
  // CHECK-NEXT: @[[m]] ld.global.v2.f64 {[[y:%fd[0-9]+]], [[z:%fd[0-9]+]]}, {{\[}}[[p]]+8];
  %y, %z = simt.load %p[1] mask %m : f64, f64
  // CHECK-NEXT: @[[m]] st.global.v2.f64 {{\[}}[[p]]], {[[y]], [[z]]};
  simt.store %y, %z to %p[0] mask %m
  // The given cell, and over it the buffer's where the mask is on.
  // CHECK-NEXT: mov.f64 [[o:%fd[0-9]+]], [[x]];
  // CHECK-NEXT: @[[m]] ld.global.f64 [[o]], {{\[}}[[p]]+24];
  %o = simt.override %x from %p[3] mask %m
  // A cell's line is prefetched by address, without a destination; the cell's size scales the offset.
  // CHECK-NEXT: @[[m]] prefetch.global.L1 {{\[}}[[p]]+32];
  simt.prefetch %p[4] mask %m : f64
  // CHECK-NEXT: prefetch.global.L1 {{\[}}[[p]]+-8];
  simt.prefetch %p[-2] : f32
  // A constant is stored from a register.
  %one = arith.constant 1.0 : f64
  // CHECK-NEXT: mov.f64 [[c:%fd[0-9]+]], 0d3FF0000000000000;
  // CHECK-NEXT: st.global.f64 {{\[}}[[p]]], [[c]];
  simt.store %one to %p[0]
  // CHECK-NEXT: mov.u32 [[ring:%r[0-9]+]], dynamic_shared;
  // CHECK-NEXT: add.u32 [[ring]], [[ring]], 4096;
  %ring = simt.shared at 4096 : !llvm.ptr<3>
  // CHECK-NEXT: mad.lo.s32 [[slot:%r[0-9]+]], [[i]], 8, [[ring]];
  %slot = llvm.getelementptr %ring[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f64
  // CHECK-NEXT: ld.shared.f64 %fd{{[0-9]+}}, {{\[}}[[slot]]+16];
  %s = simt.load %slot[2] : f64
  // CHECK-NEXT: ld.shared.v4.f32 {[[q0:%f[0-9]+]], [[q1:%f[0-9]+]], [[q2:%f[0-9]+]], [[q3:%f[0-9]+]]}, {{\[}}[[slot]]];
  %q0, %q1, %q2, %q3 = simt.load %slot[0] : f32, f32, f32, f32
  // CHECK-NEXT: st.shared.v4.f32 {{\[}}[[slot]]], {[[q0]], [[q1]], [[q2]], [[q3]]};
  simt.store %q0, %q1, %q2, %q3 to %slot[0]
  %behind = llvm.getelementptr %slot[4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f64
  %next = llvm.getelementptr %p[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f64
  // CHECK-NEXT: cp.async.cg.shared.global.L2::128B {{\[}}[[slot]]+32], {{\[}}[[p]]+16], 16, [[i]];
  "nvvm.cp.async.shared.global"(%behind, %next, %i) <{size = 16 : i32, modifier = #nvvm.load_cache_modifier<cg>}> : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  // CHECK-NEXT: cp.async.ca.shared.global {{\[}}[[slot]]], {{\[}}[[p]]], 8;
  "nvvm.cp.async.shared.global"(%slot, %p) <{size = 8 : i32, modifier = #nvvm.load_cache_modifier<ca>}> : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  // CHECK-NEXT: cp.async.commit_group;
  "nvvm.cp.async.commit.group"() : () -> ()
  // CHECK-NEXT: cp.async.wait_group 2;
  "nvvm.cp.async.wait.group"() <{n = 2 : i32}> : () -> ()
  // CHECK-NEXT: ret;
  llvm.return
}

// CHECK-LABEL: .visible .entry threads(
// CHECK:         ld.param.f64 [[x:%fd[0-9]+]]
llvm.func @threads(%x: f64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
  %full = arith.constant -1 : i32
  %one = arith.constant 1 : i32
  %clamp = arith.constant 31 : i32
  // CHECK-NEXT: mov.u32 [[t:%r[0-9]+]], %tid.x;
  %t = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
  // CHECK-NEXT: mov.u32 %r{{[0-9]+}}, %ctaid.x;
  %b = "nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
  // CHECK-NEXT: redux.sync.min.s32 %r{{[0-9]+}}, [[t]], -1;
  %0 = "nvvm.redux.sync"(%t, %full) <{kind = #nvvm.reduction_kind<min>}> : (i32, i32) -> i32
  // CHECK-NEXT: redux.sync.max.u32
  %1 = "nvvm.redux.sync"(%t, %full) <{kind = #nvvm.reduction_kind<umax>}> : (i32, i32) -> i32
  // CHECK-NEXT: setp.lt.s32 [[p:%p[0-9]+]], [[t]], 1;
  %p = arith.cmpi slt, %t, %one : i32
  // CHECK-NEXT: vote.sync.all.pred %p{{[0-9]+}}, [[p]], -1;
  %all = "nvvm.vote.sync"(%full, %p) <{kind = #nvvm.vote_sync_kind<all>}> : (i32, i1) -> i1
  // CHECK-NEXT: redux.sync.or.b32
  %2 = "nvvm.redux.sync"(%t, %full) <{kind = #nvvm.reduction_kind<or>}> : (i32, i32) -> i32
  // CHECK-NEXT: mov.b64 {[[lo:%r[0-9]+]], [[hi:%r[0-9]+]]}, [[x]];
  %lo, %hi = simt.split %x : f64
  // CHECK-NEXT: shfl.sync.down.b32 [[m:%r[0-9]+]], [[lo]], 1, 31, -1;
  %m = "nvvm.shfl.sync"(%full, %lo, %one, %clamp) <{kind = #nvvm.shfl_kind<down>}> : (i32, i32, i32, i32) -> i32
  // CHECK-NEXT: mov.b64 %fd{{[0-9]+}}, {[[m]], [[hi]]};
  %y = simt.join %m, %hi : f64
  // CHECK-NEXT: bar.sync 0;
  "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
  // CHECK-NEXT: bar.warp.sync -1;
  "nvvm.bar.warp.sync"(%full) : (i32) -> ()
  // CHECK-NEXT: ret;
  llvm.return
}

// CHECK-LABEL: .visible .entry control(
// CHECK:         ld.param.u32 [[n:%r[0-9]+]]
// CHECK-NEXT:    ld.param.f64 [[x:%fd[0-9]+]]
llvm.func @control(%n: i32, %x: f64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  // What nothing has set is zero; a loop is tested before its first turn and at the end of each.
  %unset = simt.unset : f64
  // CHECK-NEXT: mov.b32 [[i:%r[0-9]+]], 0;
  // CHECK-NEXT: mov.f64 [[a:%fd[0-9]+]], 0d0000000000000000;
  // CHECK-NEXT: mov.f64 [[b:%fd[0-9]+]], [[x]];
  // CHECK-NEXT: setp.ge.s32 [[t:%p[0-9]+]], [[i]], [[n]];
  // CHECK-NEXT: @[[t]] bra [[end:\$end_[0-9]+]];
  // CHECK-NEXT: [[loop:\$loop_[0-9]+]]:
  %r0, %r1 = scf.for %i = %zero to %n step %two iter_args(%a = %unset, %b = %x) -> (f64, f64) : i32 {
    // CHECK-NEXT: add.rn.f64 [[c:%fd[0-9]+]], [[a]], [[b]];
    %c = arith.addf %a, %b : f64
    // Both are assigned at once: what is overwritten before it is read is saved.
    // CHECK-NEXT: mov.f64 [[saved:%fd[0-9]+]], [[b]];
    // CHECK-NEXT: mov.f64 [[a]], [[saved]];
    // CHECK-NEXT: mov.f64 [[b]], [[c]];
    // CHECK-NEXT: add.s32 [[i]], [[i]], 2;
    // CHECK-NEXT: setp.lt.s32 [[t]], [[i]], [[n]];
    // CHECK-NEXT: @[[t]] bra [[loop]];
    // CHECK-NEXT: [[end]]:
    scf.yield %b, %c : f64, f64
  }
  // CHECK-NEXT: setp.lt.f64 [[m:%p[0-9]+]], [[a]], [[b]];
  %m = arith.cmpf olt, %r0, %r1 : f64
  // CHECK-NEXT: @![[m]] bra [[else:\$else_[0-9]+]];
  // CHECK-NEXT: neg.f64 [[d:%fd[0-9]+]], [[x]];
  // CHECK-NEXT: mov.f64 [[r:%fd[0-9]+]], [[d]];
  // CHECK-NEXT: bra [[fi:\$fi_[0-9]+]];
  // CHECK-NEXT: [[else]]:
  // CHECK-NEXT: mov.f64 [[r]], [[x]];
  // CHECK-NEXT: [[fi]]:
  %r = scf.if %m -> (f64) {
    %d = arith.negf %x : f64
    scf.yield %d : f64
  } else {
    scf.yield %x : f64
  }
  // CHECK-NEXT: @![[m]] bra [[skip:\$else_[0-9]+]];
  // CHECK-NEXT: bar.sync 0;
  // CHECK-NEXT: [[skip]]:
  scf.if %m {
    "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
  }
  // CHECK-NEXT: ret;
  llvm.return
}
