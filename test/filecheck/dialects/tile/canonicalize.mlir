// RUN: xdsl-opt %s -p canonicalize | filecheck %s
// RUN: xdsl-opt %s -p cse | filecheck %s --check-prefix=CSE

// Copies and buffers without effect are left out.

!field = !stencil.field<[-1,9]x[-1,9]xf64>

// A copy of a field onto itself is none; a buffer without a user is not made.
// CHECK-LABEL: func.func @copies(
// CHECK-NEXT:    tile.copy %A to %B
// CHECK-NEXT:    func.return
func.func @copies(%A: !field, %B: !field) {
  %x = tile.scratch like %A : !field -> !field
  tile.copy %A to %A : !field, !field
  tile.copy %A to %B : !field, !field
  func.return
}

// Two buffers of one size are two.
// CSE-LABEL: func.func @buffers(
// CSE-NEXT:    %x = tile.scratch
// CSE-NEXT:    %y = tile.scratch
// CSE-NEXT:    tile.launch @k(%x, %y)
func.func @buffers(%A: !field) {
  %x = tile.scratch like %A : !field -> !field
  %y = tile.scratch like %A : !field -> !field
  tile.launch @k(%x, %y) : !field, !field
  func.return
}
