// RUN: xdsl-opt %s -t ptx | filecheck %s

// Cells of 16 bits move in registers of 16 bits; a f16 is converted, a bf16 is the upper half of a f32.

// CHECK-LABEL: .visible .entry half(
// CHECK:       .reg .b16 %h
llvm.func @half(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
  // CHECK:      ld.global.v2.b16 {[[A:%h[0-9]+]], [[B:%h[0-9]+]]}, {{\[}}[[P:%rd[0-9]+]]+4]
  %a, %b = simt.load %p[2] : f16, f16
  // CHECK:      cvt.f32.f16 [[X:%f[0-9]+]], [[A]]
  %x = arith.extf %a : f16 to f32
  // CHECK:      cvt.rn.f16.f32 [[R:%h[0-9]+]], [[X]]
  // CHECK-NEXT: cvt.f32.f16 [[Y:%f[0-9]+]], [[R]]
  %y = temporal.round %x as f16 : f32
  %c = arith.truncf %y : f32 to f16
  // A rounded number is in a 16-bit register already.
  // CHECK-NEXT: st.global.b16 {{\[}}[[P]]], [[R]]
  simt.store %c to %p[0]
  // CHECK-NEXT: ld.global.b16 [[D:%h[0-9]+]], {{\[}}[[P]]+6]
  %d = simt.load %p[3] : bf16
  // CHECK-NEXT: mov.b16 [[Z:%h[0-9]+]], 0
  // CHECK-NEXT: mov.b32 [[E:%f[0-9]+]], {[[Z]], [[D]]}
  %e = arith.extf %d : bf16 to f32
  // CHECK-NEXT: cvt.rn.bf16.f32 [[F:%h[0-9]+]], [[E]]
  %f = arith.truncf %e : f32 to bf16
  // CHECK-NEXT: st.global.b16 {{\[}}[[P]]+2], [[F]]
  simt.store %f to %p[1]
  llvm.return
}
