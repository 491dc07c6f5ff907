// RUN: xdsl-opt %s -p "raise-levels" --split-input-file | filecheck %s

// The levels that a loop views are levels of one field; the field without levels has an axis less.

!levels = memref<4x8x6xf64>
!part = memref<8x6xf64, strided<[6, 1], offset: ?>>
!level = !stencil.field<[-1,7]x[0,6]xf64>
!t = !stencil.temp<?x?xf64>
func.func @viewed(%d: !levels, %s: !level) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %k = %c1 to %c3 step %c1 {
    %below = arith.subi %k, %c1 : index
    %dk = memref.subview %d[%k, 0, 0] [1, 8, 6] [1, 1, 1] : !levels to !part
    %db = memref.subview %d[%below, 0, 0] [1, 8, 6] [1, 1, 1] : !levels to !part
    %fk = stencil.external_load %dk : !part -> !level
    %fb = stencil.external_load %db : !part -> !level
    %y = stencil.load %fb : !level -> !t
    %w = stencil.load %s : !level -> !t
    %r = stencil.apply(%a = %y : !t, %g = %w : !t) -> (!t) {
      %0 = stencil.access %a[1, 0] : !t
      %1 = stencil.access %g[0, 0] : !t
      %2 = arith.addf %0, %1 : f64
      stencil.return %2 : f64
    }
    stencil.store %r to %fk(<[0, 0], [6, 6]>) : !t to !level
  }
  return
}

// CHECK-LABEL: @viewed
// CHECK:       %[[D:.*]] = stencil.external_load %d : memref<4x8x6xf64> -> !stencil.field<[0,4]x[-1,7]x[0,6]xf64>
// CHECK-NOT:   scf.for
// CHECK-NOT:   memref.subview
// CHECK:       %{{.*}} = stencil.load %[[D]] : {{.*}} -> !stencil.temp<?x?x?xf64>
// CHECK:       stencil.access %{{.*}}[-1, 1, 0] : !stencil.temp<?x?x?xf64>
// CHECK-NEXT:  stencil.access %{{.*}}[_, 0, 0] : !stencil.temp<?x?xf64>
// CHECK:       stencil.store %{{.*}} to %[[D]](<[1, 0, 0], [2, 6, 6]>)
// CHECK:       stencil.store %{{.*}} to %[[D]](<[2, 0, 0], [3, 6, 6]>)

// -----

// Levels viewed in two nested loops.

!levels = memref<6x8xf64>
!part = memref<8xf64, strided<[1], offset: ?>>
!level = !stencil.field<[0,8]xf64>
!t = !stencil.temp<?xf64>
func.func @nested(%d: !levels, %s: !level) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %first = arith.muli %i, %c3 : index
      %k = arith.addi %first, %j : index
      %dk = memref.subview %d[%k, 0] [1, 8] [1, 1] : !levels to !part
      %fk = stencil.external_load %dk : !part -> !level
      %w = stencil.load %s : !level -> !t
      %r = stencil.apply(%g = %w : !t) -> (!t) {
        %0 = stencil.access %g[0] : !t
        stencil.return %0 : f64
      }
      stencil.store %r to %fk(<[0], [8]>) : !t to !level
    }
  }
  return
}

// CHECK-LABEL: @nested
// CHECK-NOT:   scf.for
// CHECK:       stencil.store %{{.*}} to %{{.*}}(<[0, 0], [1, 8]>)
// CHECK:       stencil.store %{{.*}} to %{{.*}}(<[5, 0], [6, 8]>)

// -----

// An apply that stores two levels: they stay views, and the loop is unrolled.

!levels = memref<4x8xf64>
!part = memref<8xf64, strided<[1], offset: ?>>
!level = !stencil.field<[0,8]xf64>
!t = !stencil.temp<?xf64>
func.func @stored_twice(%d: !levels, %s: !level) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c3 step %c1 {
    %k = arith.addi %i, %c1 : index
    %di = memref.subview %d[%i, 0] [1, 8] [1, 1] : !levels to !part
    %dk = memref.subview %d[%k, 0] [1, 8] [1, 1] : !levels to !part
    %fi = stencil.external_load %di : !part -> !level
    %fk = stencil.external_load %dk : !part -> !level
    %w = stencil.load %s : !level -> !t
    %r = stencil.apply(%g = %w : !t) -> (!t) {
      %0 = stencil.access %g[0] : !t
      stencil.return %0 : f64
    }
    stencil.store %r to %fi(<[0], [8]>) : !t to !level
    stencil.store %r to %fk(<[0], [8]>) : !t to !level
  }
  return
}

// CHECK-LABEL: @stored_twice
// CHECK-NOT:   scf.for
// CHECK:       memref.subview %d[%{{.*}}, 0] [1, 8] [1, 1]
// CHECK:       memref.subview

// -----

// A level at a number that only a run knows: the program stays as it is.

!levels = memref<4x8xf64>
!part = memref<8xf64, strided<[1], offset: ?>>
!level = !stencil.field<[0,8]xf64>
!t = !stencil.temp<?xf64>
func.func @unknown(%d: !levels, %k: index) {
  %dk = memref.subview %d[%k, 0] [1, 8] [1, 1] : !levels to !part
  %fk = stencil.external_load %dk : !part -> !level
  %y = stencil.load %fk : !level -> !t
  %r = stencil.apply(%a = %y : !t) -> (!t) {
    %0 = stencil.access %a[0] : !t
    stencil.return %0 : f64
  }
  stencil.store %r to %fk(<[0], [8]>) : !t to !level
  return
}

// CHECK-LABEL: @unknown
// CHECK:       memref.subview
