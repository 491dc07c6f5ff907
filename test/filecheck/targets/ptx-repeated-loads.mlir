// RUN: xdsl-opt %s -t ptx | filecheck %s

// Cells that are loaded twice under different masks: the registers of a load under a mask are set before the load, so
// that the assembler has no undefined register to take for the other load's.

// CHECK-LABEL: .visible .entry twice(
llvm.func @twice(%a: !llvm.ptr<1>, %i: i32, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
  %m = arith.cmpi slt, %i, %n : i32
  %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  // CHECK:      mov.f32 [[x:%f[0-9]+]], 0f00000000;
  // CHECK-NEXT: mov.f32 [[y:%f[0-9]+]], 0f00000000;
  // CHECK-NEXT: @%p{{[0-9]+}} ld.global.v2.f32 {[[x]], [[y]]}, {{\[}}[[p:%rd[0-9]+]]+8];
  %x, %y = simt.load %p[2] mask %m : f32, f32
  // CHECK-NEXT: ld.global.v2.f32 {%f{{[0-9]+}}, %f{{[0-9]+}}}, {{\[}}[[p]]+8];
  %q = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
  %z, %w = simt.load %q[1] : f32, f32
  // Cells that are loaded once, or again under the same mask, need no value.
  // CHECK-NEXT: @%p{{[0-9]+}} ld.global.f32
  %u = simt.load %p[7] mask %m : f32
  // CHECK-NEXT: @%p{{[0-9]+}} ld.global.f32
  %v = simt.load %p[9] mask %m : f32
  // CHECK-NEXT: @%p{{[0-9]+}} ld.global.f32
  %t = simt.load %p[9] mask %m : f32
  llvm.return
}
