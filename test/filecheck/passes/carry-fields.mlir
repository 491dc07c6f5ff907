// RUN: xdsl-opt %s -p carry-fields --split-input-file | filecheck %s

// Loads of memrefs in a step are names of the carried fields; a reader behind the loop gets the memref.

// CHECK-LABEL: func.func @turns(%A: memref<8xf64>, %B: memref<8xf64>, %n: index)
// CHECK:         %[[a:.*]] = builtin.unrealized_conversion_cast %A : memref<8xf64> to !stencil.field<[-1,7]xf64>
// CHECK-NEXT:    %[[b:.*]] = builtin.unrealized_conversion_cast %B : memref<8xf64> to !stencil.field<[-1,7]xf64>
// CHECK-NEXT:    %[[r:.*]], %{{.*}} = scf.for %t = %c0 to %n step %c1 iter_args(%a = %[[a]], %b = %[[b]]) -> (!stencil.field<[-1,7]xf64>, !stencil.field<[-1,7]xf64>) {
// CHECK-NEXT:      %u = stencil.load %a : !stencil.field<[-1,7]xf64> -> !stencil.temp<?xf64>
// CHECK-NEXT:      stencil.store %u to %b(<[0], [6]>)
// CHECK-NEXT:      scf.yield %b, %a
// CHECK:         %[[m:.*]] = builtin.unrealized_conversion_cast %[[r]] : !stencil.field<[-1,7]xf64> to memref<8xf64>
// CHECK-NEXT:    func.return %[[m]] : memref<8xf64>
!field = !stencil.field<[-1,7]xf64>
func.func @turns(%A: memref<8xf64>, %B: memref<8xf64>, %n: index) -> memref<8xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (memref<8xf64>, memref<8xf64>) {
    %x = stencil.external_load %a : memref<8xf64> -> !field
    %y = stencil.external_load %b : memref<8xf64> -> !field
    %u = stencil.load %x : !field -> !stencil.temp<?xf64>
    stencil.store %u to %y(<[0], [6]>) : !stencil.temp<?xf64> to !field
    scf.yield %b, %a : memref<8xf64>, memref<8xf64>
  }
  return %r#0 : memref<8xf64>
}

// -----

// A step that reads a cell of the memref keeps the memref.

// CHECK-LABEL: func.func @cell
// CHECK:         iter_args(%a = %A) -> (memref<8xf64>)
!field = !stencil.field<[-1,7]xf64>
func.func @cell(%A: memref<8xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A) -> (memref<8xf64>) {
    %x = stencil.external_load %a : memref<8xf64> -> !field
    %u = stencil.load %x : !field -> !stencil.temp<?xf64>
    stencil.store %u to %x(<[0], [6]>) : !stencil.temp<?xf64> to !field
    %v = memref.load %a[%c0] : memref<8xf64>
    memref.store %v, %a[%c1] : memref<8xf64>
    scf.yield %a : memref<8xf64>
  }
  return
}

// -----

// A name of a name is yielded, and a loop inside carries the memrefs of the loop outside.

// CHECK-LABEL: func.func @nested
// CHECK:         scf.for %t = {{.*}} -> (!stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>) {
// CHECK:           scf.for %k = {{.*}} -> (!stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>) {
// CHECK-NEXT:        %u = stencil.load %c
// CHECK-NEXT:        stencil.store %u to %d
// CHECK-NEXT:        scf.yield %d, %c
!field = !stencil.field<[0,8]xf64>
!memref = memref<8xf64>
func.func @nested(%A: !memref, %B: !memref, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!memref, !memref) {
    %q:2 = scf.for %k = %c0 to %n step %c1 iter_args(%c = %a, %d = %b) -> (!memref, !memref) {
      %x = stencil.external_load %c : !memref -> !field
      %open = "memref.cast"(%d) : (!memref) -> memref<?xf64>
      %e = "memref.cast"(%open) : (memref<?xf64>) -> !memref
      %y = stencil.external_load %e : !memref -> !field
      %u = stencil.load %x : !field -> !stencil.temp<?xf64>
      stencil.store %u to %y(<[0], [6]>) : !stencil.temp<?xf64> to !field
      scf.yield %e, %c : !memref, !memref
    }
    scf.yield %q#0, %q#1 : !memref, !memref
  }
  return
}

// -----

// A memref picked by a condition stays.

// CHECK-LABEL: func.func @picked
// CHECK:         iter_args(%a = %A) -> (memref<8xf64>)
!field = !stencil.field<[0,8]xf64>
func.func @picked(%A: memref<8xf64>, %B: memref<8xf64>, %n: index, %when: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A) -> (memref<8xf64>) {
    %x = stencil.external_load %a : memref<8xf64> -> !field
    %m = scf.if %when -> (memref<8xf64>) {
      scf.yield %a : memref<8xf64>
    } else {
      scf.yield %B : memref<8xf64>
    }
    %y = stencil.external_load %m : memref<8xf64> -> !field
    %u = stencil.load %y : !field -> !stencil.temp<?xf64>
    stencil.store %u to %x(<[0], [6]>) : !stencil.temp<?xf64> to !field
    scf.yield %a : memref<8xf64>
  }
  return
}
