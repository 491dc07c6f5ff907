// RUN: xdsl-opt %s -t ptx | filecheck %s

// A loop with `simt.rolled` stays rolled in the assembler; other loops may be unrolled.

// CHECK-LABEL: .visible .entry copied(
llvm.func @copied(%a: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // CHECK:      $loop[[first:[0-9_]*]]:
  // CHECK-NEXT: .pragma "nounroll";
  // CHECK-NEXT: ld.global.f32
  // CHECK:      bra $loop[[first]];
  scf.for %i = %zero to %n step %one : i32 {
    %x = simt.load %a[1] : f32
    simt.store %x to %a[2]
  } {simt.rolled}
  // CHECK-NOT:  .pragma
  // CHECK:      ld.global.f32
  scf.for %i = %zero to %n step %one : i32 {
    %x = simt.load %a[3] : f32
    simt.store %x to %a[4]
  }
  llvm.return
}
