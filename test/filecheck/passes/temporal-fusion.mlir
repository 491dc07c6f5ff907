// RUN: xdsl-opt %s -p 'temporal-fusion{depths=6}' 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'temporal-fusion{depths=3,12}' | filecheck %s --check-prefix=SEVERAL
// RUN: xdsl-opt %s -p 'temporal-fusion{depths=11}' | filecheck %s --check-prefix=ODD
// RUN: xdsl-opt %s -p 'temporal-fusion{depths=1}' | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p temporal-fusion | filecheck %s --check-prefix=NONE
// RUN: xdsl-opt %s -p 'temporal-fusion{depths=4,0}' --verify-diagnostics | filecheck %s --check-prefix=ZERO

// The depths for which kernels are made: those given, the powers of two below the deepest, and 1, so
// that any number of steps has a short plan. Without the option the depths are left to choose-schedule.

// CHECK:   temporal.loop in @four: no launch advances 6 steps of a program with 4 steps: the plan has kernels of 3, 1
// CHECK:   temporal.loop in @one: no launch advances 6 steps of a program with 1 steps: the plan has kernels of 1
// CHECK:   temporal.loop %n (%a = %A) rotate [0] depths [6, 4, 2, 1] {
// SEVERAL: temporal.loop %n (%a = %A) rotate [0] depths [12, 8, 4, 3, 2, 1] {
// ONE:     temporal.loop %n (%a = %A) rotate [0] depths [1] {
// NONE:    temporal.loop %n (%a = %A) rotate [0] {
// ZERO:    temporal-fusion: depths are numbers from 1 to 256, got [4, 0]
func.func @loop(%n: index, %A: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    temporal.update %a = @cell(%a[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>
  func.return
}

// Of two buffers that take turns an odd number of steps leaves all data in the program's own: where the
// deepest kernel advances an odd number, the others do, too.
// CHECK-LABEL: func.func @turns(
// CHECK:         depths [6, 4, 2, 1] {
// ODD-LABEL:   func.func @turns(
// ODD:           depths [11, 9, 5, 3, 1] {
func.func @turns(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// A loop that updates nothing keeps the powers of two.
// ODD-LABEL:   func.func @nothing(
// ODD:           depths [11, 8, 4, 2, 1] {
func.func @nothing(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// A loop with a known number of steps has the depths of its launches, and depth 1: the last of four steps
// runs alone, as the fused steps end in the other buffer. A loop of one step has depth 1 only.
// CHECK-LABEL: func.func @four(
// CHECK:         depths [3, 1] {
func.func @four(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  %n = arith.constant 4 : index
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// CHECK-LABEL: func.func @one(
// CHECK:         depths [1] {
func.func @one(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  %zero = arith.constant 0 : index
  %low = arith.constant 2 : index
  %high = arith.constant 5 : index
  %step = arith.constant 4 : index
  %length = arith.subi %high, %low : index
  %count = arith.ceildivsi %length, %step : index
  %n = arith.maxsi %count, %zero : index
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}
