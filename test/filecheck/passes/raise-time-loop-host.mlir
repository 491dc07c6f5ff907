// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>&1 | filecheck %s

// A time loop that the host has to take part in stays an scf.for, marked as a time loop, with a remark that
// says why. Its stores become sweeps, so that it runs a step at a time.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.for in @carries_a_number: the time loop runs a step at a time: the loop carries a value of type f64; carry stencil.field values only
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @carries_a_number(%n: index, %A: !field, %s: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %x = %s) -> (!field, f64) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %a(<[0], [8]>) : !temp to !field
    scf.yield %a, %x : !field, f64
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.yield in @yields_another: the time loop runs a step at a time: the loop yields something else than its own fields; yield a rotation of them
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @yields_another(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A) -> (!field) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %a(<[0], [8]>) : !temp to !field
    scf.yield %B : !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.yield in @yields_twice: the time loop runs a step at a time: the loop yields a field twice; yield each carried field once
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @yields_twice(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %b : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      arith.index_cast in @uses_the_time: the time loop runs a step at a time: the loop depends on the time index, and kernels do not
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @uses_the_time(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %i = arith.index_cast %t : index to i64
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// Source injection, for example.
// CHECK:      memref.store in @writes_memory: the time loop runs a step at a time: the operation runs on the host in every step; without such an operation kernels advance several steps
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @writes_memory(%n: index, %A: !field, %source: f64, %memory: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[0], [8]>) : !temp to !field
    memref.store %source, %memory[%c1] : memref<8xf64>
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.for in @casts_to_two_types: the time loop runs a step at a time: the loop casts a carried field to several types; use one type
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @casts_to_two_types(%n: index, %A: !stencil.field<?xf64>, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A) -> (!stencil.field<?xf64>) {
    %p = stencil.cast %a : !stencil.field<?xf64> -> !field
    %q = stencil.cast %a : !stencil.field<?xf64> -> !stencil.field<[0,4]xf64>
    %u = stencil.load %p : !field -> !temp
    stencil.store %u to %B(<[0], [8]>) : !temp to !field
    scf.yield %a : !stencil.field<?xf64>
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.for in @turns_of_two_types: the time loop runs a step at a time: rotating fields are cast to several types; use one type for all
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @turns_of_two_types(%n: index, %A: !stencil.field<?xf64>, %B: !stencil.field<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!stencil.field<?xf64>, !stencil.field<?xf64>) {
    %p = stencil.cast %a : !stencil.field<?xf64> -> !field
    %q = stencil.cast %b : !stencil.field<?xf64> -> !stencil.field<[0,9]xf64>
    %u = stencil.load %p : !field -> !temp
    stencil.store %u to %q(<[0], [8]>) : !temp to !stencil.field<[0,9]xf64>
    scf.yield %b, %a : !stencil.field<?xf64>, !stencil.field<?xf64>
  }
  return
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>
!line = !stencil.field<[0,8]xf64>

// CHECK:      stencil.load in @spreads_what_it_writes: the time loop runs a step at a time: the loop writes a loaded field of fewer axes; give the field all axes
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @spreads_what_it_writes(%n: index, %A: !field, %K: !line, %L: !line) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %l = stencil.load %L : !line -> !stencil.temp<?xf64>
    stencil.store %l to %K(<[0], [8]>) : !stencil.temp<?xf64> to !line
    %k = stencil.load %K : !line -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %k : !stencil.temp<?xf64>) -> (!temp) {
      %0 = stencil.access %x[0, _] : !stencil.temp<?xf64>
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0, 0], [8, 8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.dyn_access in @gathers: the time loop runs a step at a time: the step reads cells at computed places, unlike kernels of several steps; read at constant offsets
// CHECK:      scf.for
// CHECK:        temporal.gather
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @gathers(%n: index, %A: !field, %B: !field, %P: !stencil.field<[0,8]xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    temporal.gather %B = %A at (%P) : !field from !field
    %b = stencil.load %B : !field -> !temp
    stencil.store %b to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>
!line = !stencil.field<[0,8]xf64>

// CHECK:      scf.for in @two_ranks: the time loop runs a step at a time: a step updates domains of 1 and 2 axes, and kernels of several steps have one; update one domain outside the loop
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @two_ranks(%n: index, %A: !field, %B: !field, %K: !line, %L: !line) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %l = stencil.load %L : !line -> !stencil.temp<?xf64>
    stencil.store %l to %K(<[0], [8]>) : !stencil.temp<?xf64> to !line
    %a = stencil.load %A : !field -> !temp
    stencil.store %a to %B(<[0, 0], [8, 8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// A cell itself takes the number of the step.
// CHECK:      stencil.apply in @passes_the_time: the time loop runs a step at a time: the loop depends on the time index, and kernels do not
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} sweep {
func.func @passes_the_time(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %now = %t : index) -> (!temp) {
      %c = stencil.access %x[0] : !temp
      %i = arith.index_cast %now : index to i64
      %f = arith.sitofp %i : i64 to f64
      %s = arith.addf %c, %f : f64
      stencil.return %s : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// A sweep along an axis stays, and stores before and after become loops of a step.
// CHECK:      temporal.sweep in @sweeps: the time loop runs a step at a time: a sweep along axis 0 reads its own results, and is a launch of its own in every step
// CHECK:      scf.for
// CHECK:        temporal.loop %{{.*}} (%b_1 = %b) rotate [0] sweep {
// CHECK:        temporal.sweep %b = @add(%b[-1], %a[0]) along 0 ascending in <[1], [8]>
// CHECK:        temporal.loop %{{.*}} (%a_1 = %a) rotate [0] sweep {
// CHECK:      } {timetile.time_loop}
func.func private @add(%x: f64, %y: f64) -> f64 {
  %s = arith.addf %x, %y : f64
  func.return %s : f64
}
func.func @sweeps(%n: index, %a: !field, %b: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %b(<[0], [1]>) : !temp to !field
    temporal.sweep %b = @add(%b[-1], %a[0]) along 0 ascending in <[1], [8]>
    %v = stencil.load %b : !field -> !temp
    stencil.store %v to %a(<[0], [8]>) : !temp to !field
  }
  return
}
