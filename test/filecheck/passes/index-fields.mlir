// RUN: xdsl-opt %s -p index-fields | filecheck %s

// Fields of indices hold i64, also as arguments. Cells read them as index, and return them as i64; other
// fields stay as they are.

!field = !stencil.field<[0,8]xindex>
!temp = !stencil.temp<?xindex>

// CHECK-LABEL: func.func @ramp
// CHECK-SAME:    %A: !stencil.field<[0,8]xi64>, %B: !stencil.field<[0,8]xf64>)
// CHECK:         %[[u:.*]] = stencil.load %A : !stencil.field<[0,8]xi64> -> !stencil.temp<?xi64>
// CHECK:         stencil.apply(%x = %[[u]] : !stencil.temp<?xi64>) -> (!stencil.temp<?xi64>) {
// CHECK-NEXT:      %[[c:.*]] = stencil.access %x[0] : !stencil.temp<?xi64>
// CHECK-NEXT:      %[[k:.*]] = arith.index_cast %[[c]] : i64 to index
// CHECK:           %[[s:.*]] = arith.addi %[[k]], %{{.*}} : index
// CHECK-NEXT:      %[[r:.*]] = arith.index_cast %[[s]] : index to i64
// CHECK-NEXT:      stencil.return %[[r]] : i64
func.func @ramp(%A: !field, %B: !stencil.field<[0,8]xf64>) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %c = stencil.access %x[0] : !temp
    %i = stencil.index 0 <[0]>
    %s = arith.addi %c, %i : index
    stencil.return %s : index
  }
  stencil.store %v to %A(<[0], [8]>) : !temp to !field
  return
}
