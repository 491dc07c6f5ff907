// RUN: xdsl-opt %s -p inline-calls,raise-time-loop --split-input-file 2>&1 | filecheck %s

// A call that cannot stand in its cell is left, and raising says why.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

func.func private @somewhere(f64) -> f64
// CHECK:      func.call in @nowhere: the time loop is left unchanged: it calls @somewhere, which has no body; define it in the module
// CHECK:      scf.for
func.func @nowhere(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = func.call @somewhere(%0) : (f64) -> f64
      stencil.return %1 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

func.func private @somewhere(%q: f64) -> f64 {
  %h = func.call @elsewhere(%q) : (f64) -> f64
  func.return %h : f64
}
func.func private @elsewhere(%q: f64) -> f64 {
  %h = func.call @somewhere(%q) : (f64) -> f64
  func.return %h : f64
}
// CHECK:      func.call in @recursive: the time loop is left unchanged: it calls @somewhere, which calls itself; write its steps one after the other
// CHECK:      scf.for
func.func @recursive(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = func.call @somewhere(%0) : (f64) -> f64
      stencil.return %1 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

func.func private @somewhere(%q: f64) -> f64 {
  cf.br ^end(%q : f64)
^end(%r: f64):
  func.return %r : f64
}
// CHECK:      func.call in @branches: the time loop is left unchanged: it calls @somewhere, which has several blocks; use arith.select or scf.if
// CHECK:      scf.for
func.func @branches(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = func.call @somewhere(%0) : (f64) -> f64
      stencil.return %1 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

func.func private @somewhere(%q: f64) -> f64 {
  %m = memref.alloc() : memref<f64>
  memref.store %q, %m[] : memref<f64>
  func.return %q : f64
}
// CHECK:      func.call in @impure: the time loop is left unchanged: it calls @somewhere, in which memref.alloc does more than compute; use arith and math
// CHECK:      scf.for
func.func @impure(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = func.call @somewhere(%0) : (f64) -> f64
      stencil.return %1 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
