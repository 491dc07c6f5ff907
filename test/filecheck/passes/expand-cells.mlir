// RUN: xdsl-opt %s -p expand-cells | filecheck %s

// Quotients and remainders of integers have one result for all operands: 0 by 0, and the least integer divided by -1
// is itself.

// CHECK-LABEL: func.func private @quotients(
// CHECK:         %[[above:.*]] = arith.addi %b, %[[one:.*]] : i32
// CHECK-NEXT:    %[[two:.*]] = arith.constant 2 : i32
// CHECK-NEXT:    %[[rare:.*]] = arith.cmpi ult, %[[above]], %[[two]] : i32
// CHECK-NEXT:    %[[safe:.*]] = arith.select %[[rare]], %[[one]], %b : i32
// CHECK-NEXT:    %[[ordinary:.*]] = arith.divsi %a, %[[safe]] : i32
// CHECK-NEXT:    %[[product:.*]] = arith.muli %a, %b : i32
// CHECK-NEXT:    %q = arith.select %[[rare]], %[[product]], %[[ordinary]] : i32
// Numbers without a sign have one rare divisor, and what 1 leaves of a number is 0.
// CHECK:         %[[none:.*]] = arith.cmpi eq, %b, %{{.*}} : i32
// CHECK-NEXT:    %[[safe:.*]] = arith.select %[[none]], %{{.*}}, %b : i32
// CHECK-NEXT:    %r = arith.remui %a, %[[safe]] : i32
// A known divisor needs no test.
// CHECK-NEXT:    %seven = arith.constant 7 : i32
// CHECK-NEXT:    arith.divsi %a, %seven : i32
func.func private @quotients(%a: i32, %b: i32) -> (i32, i32, i32) {
  %q = arith.divsi %a, %b : i32
  %r = arith.remui %a, %b : i32
  %seven = arith.constant 7 : i32
  %s = arith.divsi %a, %seven : i32
  func.return %q, %r, %s : i32, i32, i32
}

// A quotient that is rounded down is one less than that towards zero where something of the other sign is left.
// CHECK-LABEL: func.func private @rounded_down(
// CHECK:         %[[ordinary:.*]] = arith.divsi %a, %seven : i32
// CHECK-NEXT:    %[[product:.*]] = arith.muli %[[ordinary]], %seven : i32
// CHECK-NEXT:    %[[left:.*]] = arith.subi %a, %[[product]] : i32
// CHECK-NEXT:    %[[zero:.*]] = arith.constant 0 : i32
// CHECK-NEXT:    %[[some:.*]] = arith.cmpi ne, %[[left]], %[[zero]] : i32
// CHECK-NEXT:    %[[signs:.*]] = arith.xori %[[left]], %seven : i32
// CHECK-NEXT:    %[[towards:.*]] = arith.cmpi slt, %[[signs]], %[[zero]] : i32
// CHECK-NEXT:    %[[corrects:.*]] = arith.andi %[[some]], %[[towards]] : i1
// CHECK-NEXT:    %[[one:.*]] = arith.constant 1 : i32
// CHECK-NEXT:    %[[less:.*]] = arith.subi %[[ordinary]], %[[one]] : i32
// CHECK-NEXT:    %q = arith.select %[[corrects]], %[[less]], %[[ordinary]] : i32
func.func private @rounded_down(%a: i32) -> i32 {
  %seven = arith.constant 7 : i32
  %q = arith.floordivsi %a, %seven : i32
  func.return %q : i32
}

// A NaN has no sign for copysign, and all NaNs are one integer.
// CHECK-LABEL: func.func private @of_nans(
// CHECK:         %[[one:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:    %[[nan:.*]] = arith.cmpf uno, %y, %y : f32
// CHECK-NEXT:    %[[sign:.*]] = arith.select %[[nan]], %[[one]], %y : f32
// CHECK-NEXT:    %c = math.copysign %x, %[[sign]] : f32
// CHECK-NEXT:    %[[nan:.*]] = arith.cmpf uno, %y, %y : f32
// CHECK-NEXT:    %[[bits:.*]] = arith.bitcast %y : f32 to i32
// CHECK-NEXT:    %[[quiet:.*]] = arith.constant 2143289344 : i32
// CHECK-NEXT:    %b = arith.select %[[nan]], %[[quiet]], %[[bits]] : i32
func.func private @of_nans(%x: f32, %y: f32) -> (f32, i32) {
  %c = math.copysign %x, %y : f32
  %b = arith.bitcast %y : f32 to i32
  func.return %c, %b : f32, i32
}

func.func @program(%A: !stencil.field<[0,8]xi32>, %B: !stencil.field<[0,8]xi32>, %C: !stencil.field<[0,8]xi32>, %D: !stencil.field<[0,8]xi32>,
                   %X: !stencil.field<[0,8]xf32>, %Y: !stencil.field<[0,8]xf32>, %Z: !stencil.field<[0,8]xf32>, %n: index) {
  temporal.loop %n (%a = %A, %b = %B, %c = %C, %d = %D, %z = %Z) rotate [0, 1, 2, 3, 4] {
    temporal.update %b, %c, %d = @quotients(%a[0], %a[0]) in <[0], [8]>
    temporal.update %b = @rounded_down(%a[0]) in <[0], [8]>
    temporal.update %z, %b = @of_nans(%X[0], %Y[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xi32>, !stencil.field<[0,8]xi32>, !stencil.field<[0,8]xi32>, !stencil.field<[0,8]xi32>, !stencil.field<[0,8]xf32>
  func.return
}
