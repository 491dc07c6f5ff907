// RUN: xdsl-opt %s -p widen-booleans --split-input-file | filecheck %s

// Cells are bytes: a read cell is compared with 0, a returned truth value is extended.

// CHECK-LABEL: func.func @moved(%A: !stencil.field<[0,8]xi8>, %B: !stencil.field<[0,8]xi8>, %n: index)
// CHECK:         scf.for %t = %{{.*}} iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,8]xi8>, !stencil.field<[0,8]xi8>)
// CHECK:           %u = stencil.load %a : !stencil.field<[0,8]xi8> -> !stencil.temp<?xi8>
// CHECK:           stencil.apply(%x = %u : !stencil.temp<?xi8>) -> (!stencil.temp<?xi8>)
// CHECK:             %[[byte:.*]] = stencil.access %x[-1] : !stencil.temp<?xi8>
// CHECK:             %[[zero:.*]] = arith.constant 0 : i8
// CHECK:             %[[truth:.*]] = arith.cmpi ne, %[[byte]], %[[zero]] : i8
// CHECK:             %[[wide:.*]] = arith.extui %[[truth]] : i1 to i8
// CHECK:             stencil.return %[[wide]] : i8
!field = !stencil.field<[0,8]xi1>
!temp = !stencil.temp<?xi1>
func.func @moved(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %m = stencil.access %x[-1] : !temp
      stencil.return %m : i1
    }
    stencil.store %v to %b(<[1], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

// A result stored in a branch, as in programs of Open Earth.

// CHECK-LABEL: func.func @stored
// CHECK:         %[[wide:.*]] = arith.extui %{{.*}} : i1 to i8
// CHECK:         stencil.store_result %[[wide]] : !stencil.result<i8>
func.func @stored(%A: !stencil.field<[0,8]xi1>) {
  %u = stencil.load %A : !stencil.field<[0,8]xi1> -> !stencil.temp<?xi1>
  %v = stencil.apply(%x = %u : !stencil.temp<?xi1>) -> (!stencil.temp<?xi1>) {
    %m = stencil.access %x[0] : !stencil.temp<?xi1>
    %s = stencil.store_result %m : !stencil.result<i1>
    stencil.return %s : !stencil.result<i1>
  }
  stencil.store %v to %A(<[0], [8]>) : !stencil.temp<?xi1> to !stencil.field<[0,8]xi1>
  return
}
