// RUN: xdsl-opt %s -p inline-values --split-input-file | filecheck %s

// A cheap value that only applies read is computed where it is read, once an offset. A value that is stored
// stays, and so does one whose copies would cost more than memory.

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @cheap
// CHECK-NEXT:    %v = stencil.apply(%{{.*}} = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
// CHECK-NEXT:      %{{.*}} = stencil.access %{{.*}}[-1]
// CHECK-NEXT:      %{{.*}} = stencil.access %{{.*}}[0]
// CHECK-NEXT:      %{{.*}} = stencil.index 0 <[-1]>
// CHECK-NEXT:      %[[a:.*]] = arith.subf
// CHECK-NEXT:      %{{.*}} = stencil.access %{{.*}}[0]
// CHECK-NEXT:      %{{.*}} = stencil.access %{{.*}}[1]
// CHECK-NEXT:      %{{.*}} = stencil.index 0 <[0]>
// CHECK-NEXT:      %[[b:.*]] = arith.subf
// CHECK-NEXT:      %{{.*}} = arith.mulf %[[a]], %[[b]] : f64
// CHECK-NOT:     stencil.apply
func.func @cheap(%u: !temp) -> !temp {
  %d = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    %r = stencil.access %x[1] : !temp
    %i = stencil.index 0 <[0]>
    %s = arith.subf %r, %l : f64
    stencil.return %s : f64
  }
  %v = stencil.apply(%g = %d : !temp) -> (!temp) {
    %a = stencil.access %g[-1] : !temp
    %b = stencil.access %g[0] : !temp
    %p = arith.mulf %a, %b : f64
    stencil.return %p : f64
  }
  return %v : !temp
}

// -----

!temp = !stencil.temp<?xf64>
!field = !stencil.field<[-1,9]xf64>

// CHECK-LABEL: func.func @stored
// CHECK:         stencil.apply
// CHECK:         stencil.apply
func.func @stored(%u: !temp, %A: !field) -> !temp {
  %d = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    stencil.return %l : f64
  }
  stencil.store %d to %A(<[0], [8]>) : !temp to !field
  %v = stencil.apply(%g = %d : !temp) -> (!temp) {
    %a = stencil.access %g[-1] : !temp
    stencil.return %a : f64
  }
  return %v : !temp
}

// -----

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @costly
// CHECK:         stencil.apply
// CHECK:         stencil.apply
func.func @costly(%u: !temp) -> !temp {
  %d = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0] : !temp
    %1 = arith.mulf %0, %0 : f64
    %2 = arith.mulf %1, %0 : f64
    %3 = arith.mulf %2, %0 : f64
    %4 = arith.mulf %3, %0 : f64
    %5 = arith.mulf %4, %0 : f64
    stencil.return %5 : f64
  }
  %v = stencil.apply(%g = %d : !temp) -> (!temp) {
    %a = stencil.access %g[-1] : !temp
    %b = stencil.access %g[0] : !temp
    %c = stencil.access %g[1] : !temp
    %f = stencil.access %g[2] : !temp
    %e = stencil.access %g[3] : !temp
    %0 = arith.addf %a, %b : f64
    %1 = arith.addf %0, %c : f64
    %2 = arith.addf %1, %f : f64
    %3 = arith.addf %2, %e : f64
    stencil.return %3 : f64
  }
  return %v : !temp
}

// -----

!plate = !stencil.temp<?x?xf64>
!column = !stencil.temp<?xf64>

// A field of fewer axes moves along its own axes.
// CHECK-LABEL: func.func @narrow
// CHECK:         stencil.apply(%{{.*}} = %{{.*}} : !stencil.temp<?xf64>, %{{.*}} = %{{.*}} : !stencil.temp<?x?xf64>)
// CHECK-DAG:       stencil.access %{{.*}}[1, _] : !stencil.temp<?xf64>
// CHECK-DAG:       stencil.access %{{.*}}[1, 4] : !stencil.temp<?x?xf64>
// CHECK-NOT:     stencil.apply
func.func @narrow(%u: !plate, %k: !column) -> !plate {
  %d = stencil.apply(%w = %k : !column, %x = %u : !plate) -> (!plate) {
    %0 = stencil.access %w[2, _] : !column
    %1 = stencil.access %x[2, 0] : !plate
    %2 = arith.mulf %0, %1 : f64
    stencil.return %2 : f64
  }
  %v = stencil.apply(%g = %d : !plate) -> (!plate) {
    %a = stencil.access %g[-1, 4] : !plate
    stencil.return %a : f64
  }
  return %v : !plate
}
