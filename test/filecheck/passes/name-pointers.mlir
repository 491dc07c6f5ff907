// RUN: xdsl-opt %s -p name-pointers --split-input-file | filecheck %s

// An argument that is made a pointer is a pointer; the address of a memref is its memory.

// CHECK-LABEL: func.func @addresses(%A: !llvm.ptr, %n: index)
// CHECK-NEXT:    %a = builtin.unrealized_conversion_cast %A : !llvm.ptr to memref<8xf64>
// CHECK-NEXT:    %q = builtin.unrealized_conversion_cast %a : memref<8xf64> to !llvm.ptr
// CHECK-NEXT:    %b = builtin.unrealized_conversion_cast %q : !llvm.ptr to memref<8xf64>
// CHECK-NEXT:    func.return %b
func.func @addresses(%A: i64, %n: index) -> memref<8xf64> {
  %p = llvm.inttoptr %A : i64 to !llvm.ptr
  %a = builtin.unrealized_conversion_cast %p : !llvm.ptr to memref<8xf64>
  %x = "memref.extract_aligned_pointer_as_index"(%a) : (memref<8xf64>) -> index
  %i = arith.index_cast %x : index to i64
  %q = llvm.inttoptr %i : i64 to !llvm.ptr
  %b = builtin.unrealized_conversion_cast %q : !llvm.ptr to memref<8xf64>
  return %b : memref<8xf64>
}

// -----

// A pointer made of arithmetic stays, and so does the address of a part of a memref.

// CHECK-LABEL: func.func @arithmetic(%A: i64)
// CHECK:         llvm.inttoptr
// CHECK-LABEL: func.func @part
// CHECK:         llvm.inttoptr
func.func @arithmetic(%A: i64) -> !llvm.ptr {
  %s = arith.addi %A, %A : i64
  %p = llvm.inttoptr %s : i64 to !llvm.ptr
  return %p : !llvm.ptr
}
func.func @part(%A: memref<8xf64, strided<[1], offset: 8>>) -> !llvm.ptr {
  %x = "memref.extract_aligned_pointer_as_index"(%A) : (memref<8xf64, strided<[1], offset: 8>>) -> index
  %i = arith.index_cast %x : index to i64
  %p = llvm.inttoptr %i : i64 to !llvm.ptr
  return %p : !llvm.ptr
}
