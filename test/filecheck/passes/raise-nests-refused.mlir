// RUN: xdsl-opt %s -p raise-nests --split-input-file 2>&1 | filecheck %s

// Nests that stay for the host, each with a remark.

// CHECK: the host runs the nest cell by cell: the bounds of a loop over cells are known only at run time; print the program with constants as bounds
func.func @bounds(%A: memref<10xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %n step %c1 {
    %v = memref.load %A[%i] : memref<10xf64>
    memref.store %v, %A[%i] : memref<10xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: a loop over cells has a step of 9; give it a step of 1
func.func @stride(%A: memref<10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c9 {
    %v = memref.load %A[%i] : memref<10xf64>
    memref.store %v, %A[%i] : memref<10xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the nest writes memory of 4 axes, and fields have 1 to 3; give each index of the outermost axes a memref of its own
func.func @axes(%A: memref<10x3x3x3xf64>, %v: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    memref.store %v, %A[%i, %c0, %c0, %c0] : memref<10x3x3x3xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the nest reads its own new cells (the order of Gauss-Seidel); write a recurrence along an axis as temporal.sweep (timetile.sweep in Python), or read from a memref and write to another
func.func @seidel(%A: memref<10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    %w = arith.subi %i, %c1 : index
    %v = memref.load %A[%w] : memref<10xf64>
    memref.store %v, %A[%i] : memref<10xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the nest stores twice to one memref; give each store a nest of its own
func.func @twice(%A: memref<10xf64>, %v: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    %w = arith.subi %i, %c1 : index
    memref.store %v, %A[%w] : memref<10xf64>
    memref.store %v, %A[%i] : memref<10xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the nest reads at an index other than a loop's number plus a constant; read at constant distances from the cell
func.func @far(%A: memref<10xf64>, %B: memref<10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    %w = arith.subi %c9, %i : index
    %v = memref.load %A[%w] : memref<10xf64>
    memref.store %v, %B[%i] : memref<10xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the nest reads its own target along other axes than the written axes; read from a memref and write to another
func.func @turned(%A: memref<10x10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    scf.for %j = %c1 to %c9 step %c1 {
      %v = memref.load %A[%j, %i] : memref<10x10xf64>
      memref.store %v, %A[%i, %j] : memref<10x10xf64>
    }
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: a parallel loop reads cells written by other iterations; read from a memref and write to another
func.func @race(%A: memref<10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  "scf.parallel"(%c0, %c9, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %e = arith.addi %i, %c1 : index
    %v = memref.load %A[%e] : memref<10xf64>
    memref.store %v, %A[%i] : memref<10xf64>
    scf.reduce
  }) : (index, index, index) -> ()
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the nest reads at a fixed index along an axis of many written cells; read at constant distances from the cell
func.func @fixed(%A: memref<10x10xf64>, %B: memref<10x10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    scf.for %j = %c1 to %c9 step %c1 {
      %v = memref.load %A[%c0, %j] : memref<10x10xf64>
      memref.store %v, %B[%i, %j] : memref<10x10xf64>
    }
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the nest reads memory along other axes than the written axes, as in a transpose; give both memrefs the axes in one order
func.func @transpose(%A: memref<10x10xf64>, %B: memref<10x10xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    scf.for %j = %c1 to %c9 step %c1 {
      %v = memref.load %A[%j, %i] : memref<10x10xf64>
      memref.store %v, %B[%i, %j] : memref<10x10xf64>
    }
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: a branch of the nest reads a number of all cells; read the number before the loops
func.func @branch(%A: memref<10xf64>, %K: memref<10xf64>, %q: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    %near = arith.cmpi slt, %i, %c9 : index
    %v = scf.if %near -> (f64) {
      %k = memref.load %K[%c0] : memref<10xf64>
      scf.yield %k : f64
    } else {
      scf.yield %q : f64
    }
    memref.store %v, %A[%i] : memref<10xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the memref comes from arith.select, and its memory is unknown; give the nest an argument or an allocation
func.func @picked(%A: memref<10xf64>, %B: memref<10xf64>, %first: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %P = arith.select %first, %A, %B : memref<10xf64>
  scf.for %i = %c1 to %c9 step %c1 {
    %w = arith.subi %i, %c1 : index
    %v = memref.load %P[%w] : memref<10xf64>
    memref.store %v, %A[%i] : memref<10xf64>
  }
  return
}

// -----

// CHECK: the host runs the nest cell by cell: the memref has the layout strided<[2]>; give the nest a memref without one
func.func @strided(%A: memref<10xf64, strided<[2]>>, %v: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c1 to %c9 step %c1 {
    memref.store %v, %A[%i] : memref<10xf64, strided<[2]>>
  }
  return
}
