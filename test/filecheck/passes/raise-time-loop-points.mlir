// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>&1 | filecheck %s

// Points at the end of a step belong to the update that writes the field; steps whose points belong to no update run one at
// a time, with a remark.

// CHECK:       func.func @taken
// CHECK:         temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
// CHECK-NEXT:      temporal.update %b = @taken_cell0(%a[-1], %a[1]) in <[1], [65]> points(%rows, %l, %w, %f, %l, %w, %o)
// CHECK-SAME:        uses [#temporal.points<inject 0 columns 2 of <[0], [66]>>, #temporal.points<sample 0 columns 8 of <[0], [66]>>]
// CHECK-NEXT:    }
func.func @taken(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %o: !stencil.field<[0,128]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      %r0 = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %l0, %r0 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %b at %l weights %w table %f columns 2 step %t in <[1], [65]>
    temporal.sample %b at %l weights %w table %o columns 8 step %t in <[1], [65]>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.update %b = @copied_cell(%b[0]) in <[2], [9]> points(%rows, %l, %w, %f)
func.func @copied(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %o: !stencil.field<[0,128]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      %r0 = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %l0, %r0 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %b at %l weights %w table %f columns 2 step %t in <[2], [9]>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.inject in @early: the time loop runs a step at a time: an update follows the points; put points last in the step
func.func @early(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %o: !stencil.field<[0,128]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      %r0 = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %l0, %r0 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %b at %l weights %w table %f columns 2 step %t in <[1], [65]>
    stencil.store %v to %b(<[3], [5]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.inject in @row: the time loop runs a step at a time: the row is no number of a series at the step
func.func @row(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %o: !stencil.field<[0,128]xf64>, %other: i64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      %r0 = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %l0, %r0 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %b at %l weights %w table %f columns 2 step %other in <[1], [65]>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.inject in @unwritten: the time loop runs a step at a time: the step does not write the field with points
func.func @unwritten(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %o: !stencil.field<[0,128]xf64>, %C: !stencil.field<[0,66]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      %r0 = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %l0, %r0 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %C at %l weights %w table %f columns 2 step %t in <[1], [65]>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.inject in @series: the time loop runs a step at a time: points of one update count their rows by one series
func.func @series(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %o: !stencil.field<[0,128]xf64>, %others: memref<?xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      %r0 = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %l0, %r0 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    %z = memref.load %others[%k] : memref<?xi64>
    temporal.inject %b at %l weights %w table %f columns 2 step %t in <[1], [65]>
    temporal.inject %b at %l weights %w table %f columns 2 step %z in <[1], [65]>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.inject in @carried: the time loop runs a step at a time: the loop carries the list; make the list before the loop
func.func @carried(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:3 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B, %c = %w) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>, !stencil.field<[0,8]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      stencil.return %l0 : f64
    }
    stencil.store %v to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %b at %l weights %c table %f columns 2 step %t in <[1], [65]>
    scf.yield %b, %a, %c : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>, !stencil.field<[0,8]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.sample in @unread: the time loop runs a step at a time: the sampled field is read by no later step, and kernels of several steps compute the last values only; sample a field read by steps
func.func @unread(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %o: !stencil.field<[0,128]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %k = %zero to %n step %one {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %A : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[0] : !stencil.temp<?xf64>
      stencil.return %l0 : f64
    }
    stencil.store %v to %B(<[0], [66]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.sample %B at %l weights %w table %o columns 8 step %t in <[0], [66]>
  }
  func.return
}

// -----

// CHECK: temporal.inject in @half: the time loop runs a step at a time: along axis 0 one side is kept and the other is not: the edges are updates of their own, and take no points; give both sides of each axis one boundary for all fields, or keep both sides
func.func @half(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a attributes {boundary = #temporal.boundary<keep, mirror>} : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      %l1 = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %l0, %l1 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[1], [66]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %b at %l weights %w table %f columns 2 step %t in <[1], [66]>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}

// -----

// CHECK: temporal.inject in @ring: the time loop runs a step at a time: a field is periodic, and kernels of several steps compute images of its cells without points; use another boundary along all axes for such kernels
func.func @ring(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %rows: memref<?xi64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %t = memref.load %rows[%k] : memref<?xi64>
    %u = stencil.load %a attributes {boundary = #temporal.boundary<periodic>} : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l0 = stencil.access %x[-1] : !stencil.temp<?xf64>
      stencil.return %l0 : f64
    }
    stencil.store %v to %b(<[0], [66]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    temporal.inject %b at %l weights %w table %f columns 2 step %t in <[0], [66]>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  func.return
}
