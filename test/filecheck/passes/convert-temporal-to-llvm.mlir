// RUN: xdsl-opt %s -p convert-temporal-to-llvm | filecheck %s

// Each update becomes a function of spans of its two outermost axes. Each loop becomes a function that runs some steps on a
// part of the fields, and a function that runs all its steps on a thread of a team. The loop itself stays.

!one = !stencil.field<[-1,9]xf64>
!plane = !stencil.field<[-1,9]x[-2,18]xf32>
!wide = !stencil.field<[0,8]x[0,16]xf64>

func.func private @mean(%0: f64, %1: f64) -> f64 {
  %half = arith.constant 5.000000e-01 : f64
  %s = arith.addf %0, %1 : f64
  %r = arith.mulf %s, %half : f64
  func.return %r : f64
}

func.func private @mixed(%0: f32, %1: f64, %k: f64, %j: index) -> (f32, f64) {
  %w = arith.extf %0 : f32 to f64
  %e = math.exp %w : f64
  %i = arith.index_cast %j : index to i64
  %f = arith.sitofp %i : i64 to f64
  %m = math.fma %e, %k, %f : f64
  %s = arith.maximumf %m, %1 : f64
  %n = arith.truncf %s : f64 to f32
  func.return %n, %s : f32, f64
}

func.func @run(%A: !one, %B: !one, %n: index) {
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @mean(%a[-1], %a[1]) in <[0], [8]>
  } : !one, !one
  func.return
}

func.func @coupled(%U: !plane, %W: !wide, %k: f64, %n: index) {
  %r:2 = temporal.loop %n (%u = %U, %w = %W) rotate [0, 1] {
    temporal.update %u, %w = @mixed(%u[0, 0], %w[0, 0]) scalars(%k) indices [1] in <[0, 2], [8, 14]>
  } : !plane, !wide
  func.return
}

// The loops stay, after them come the library's functions and ours.
// CHECK: temporal.loop
// CHECK: temporal.loop
// CHECK: llvm.func @timetile.barrier(!llvm.ptr) -> i32
// CHECK-NEXT: llvm.func @timetile.exp(f64) -> f64

// One axis: a span from %2 to %3. The missing second axis has one cell, inside the span of %4 and %5 or not. The first cell
// lies one behind the field's first cell.
// CHECK: llvm.func internal @loop0.update0(%[[A:\d+]]: !llvm.ptr {llvm.noalias}, %[[B:\d+]]: !llvm.ptr {llvm.noalias}, %[[LOW:\d+]]: i64, %[[HIGH:\d+]]: i64, %[[LEFT:\d+]]: i64, %[[RIGHT:\d+]]: i64) {
// CHECK: %[[HALF:\d+]] = llvm.mlir.constant(5.000000e-01 : f64) : f64
// CHECK: %[[TWO:\d+]] = llvm.mlir.constant(2) : i64
// CHECK: llvm.icmp "slt" %[[LEFT]], %[[RIGHT]] : i64
// CHECK: llvm.br ^[[HEAD:bb\d+]](%[[LOW]] : i64)
// CHECK: ^[[HEAD]](%[[I:\d+]]: i64):
// CHECK-NEXT: %[[MORE:\d+]] = llvm.icmp "slt" %[[I]], %[[HIGH]] : i64
// CHECK-NEXT: llvm.cond_br %[[MORE]], ^[[BODY:bb\d+]], ^[[DONE:bb\d+]]
// CHECK-NEXT: ^[[BODY]]:
// CHECK-NEXT: %[[AT:\d+]] = llvm.getelementptr %[[A]][%[[I]]] : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK: llvm.load %{{\d+}} {alignment = 1 : i64} : !llvm.ptr -> f64
// CHECK: %[[RIGHT:\d+]] = llvm.getelementptr %[[AT]][%[[TWO]]]
// CHECK: %[[SUM:\d+]] = llvm.fadd
// CHECK-NEXT: %[[MEAN:\d+]] = llvm.fmul %[[SUM]], %[[HALF]] : f64
// CHECK: llvm.store %[[MEAN]], %{{\d+}} {alignment = 1 : i64} : f64, !llvm.ptr
// CHECK: llvm.br ^[[HEAD]]

// A part: loops over blocks of columns, blocks of rows, and all steps, from outside to inside. Step t lags t cells behind
// the first step, and its span is 2 t wide; a step takes the cells of its box inside the block. The buffers rotate: the
// second buffer is the first buffer of the next step.
// CHECK: llvm.func internal @loop0.part(%[[A:\d+]]: !llvm.ptr, %[[B:\d+]]: !llvm.ptr, %[[COUNT:\d+]]: i64, %[[LOW:\d+]]: i64, %[[OPENING:\d+]]: i64, %[[HIGH:\d+]]: i64, %[[CLOSING:\d+]]: i64, %[[ROWS:\d+]]: i64, %[[COLUMNS:\d+]]: i64) {
// CHECK: %[[EIGHT:\d+]] = llvm.mlir.constant(8) : i64
// CHECK: %[[ZERO:\d+]] = llvm.mlir.constant(0) : i64
// CHECK: %[[TWO:\d+]] = llvm.mlir.constant(2) : i64
// CHECK: %[[ONE:\d+]] = llvm.mlir.constant(1) : i64
// CHECK: ^{{.*}}(%[[COLUMN:\d+]]: i64):
// CHECK: ^{{.*}}(%[[ROW:\d+]]: i64):
// CHECK: llvm.br ^[[HEAD:bb\d+]](%[[ZERO]], %[[A]], %[[B]] : i64, !llvm.ptr, !llvm.ptr)
// CHECK: ^[[HEAD]](%[[T:\d+]]: i64, %[[FIRST:\d+]]: !llvm.ptr, %[[SECOND:\d+]]: !llvm.ptr):
// CHECK-NEXT: llvm.icmp "slt" %[[T]], %[[COUNT]] : i64
// CHECK: %[[WIDE:\d+]] = llvm.mul %[[T]], %[[TWO]] : i64
// CHECK: %[[WIDTH:\d+]] = llvm.add %[[WIDE]], %[[ZERO]] : i64
// CHECK: llvm.mul %[[OPENING]], %[[WIDTH]] : i64
// CHECK: llvm.mul %[[CLOSING]], %[[WIDTH]] : i64
// CHECK: llvm.call_intrinsic "llvm.smax.i64"(%{{\d+}}, %[[ROW]])
// CHECK: llvm.add %[[ROW]], %[[ROWS]] : i64
// CHECK: %[[BEHIND:\d+]] = llvm.mul %[[T]], %[[ONE]] : i64
// CHECK: %[[LAG:\d+]] = llvm.add %[[BEHIND]], %[[ZERO]] : i64
// CHECK: %[[FROM:\d+]] = llvm.sub %{{\d+}}, %[[LAG]] : i64
// CHECK: %[[START:\d+]] = llvm.call_intrinsic "llvm.smax.i64"(%[[FROM]], %[[ZERO]])
// CHECK: %[[TO:\d+]] = llvm.sub %{{\d+}}, %[[LAG]] : i64
// CHECK: %[[END:\d+]] = llvm.call_intrinsic "llvm.smin.i64"(%[[TO]], %[[EIGHT]])
// CHECK: llvm.call @loop0.update0(%[[FIRST]], %[[SECOND]], %[[START]], %[[END]], %{{\d+}}, %{{\d+}})
// CHECK: llvm.br ^[[HEAD]](%{{\d+}}, %[[SECOND]], %[[FIRST]] : i64, !llvm.ptr, !llvm.ptr)

// All steps: passes of %80 steps at most. A team needs a second phase, and its threads wait after each phase.
// CHECK: llvm.func @loop0.steps(%[[A:\d+]]: !llvm.ptr, %[[B:\d+]]: !llvm.ptr, %[[N:\d+]]: i64, %[[DEPTH:\d+]]: i64, %{{\d+}}: i1, %{{\d+}}: i64, %{{\d+}}: i64, %[[THREAD:\d+]]: i64, %[[THREADS:\d+]]: i64, %[[BARRIER:\d+]]: !llvm.ptr) {
// CHECK: %[[TEAM:\d+]] = llvm.icmp "sgt" %[[THREADS]]
// CHECK: ^[[PASS:bb\d+]](%[[DONE:\d+]]: i64, %[[FIRST:\d+]]: !llvm.ptr, %[[SECOND:\d+]]: !llvm.ptr):
// CHECK-NEXT: llvm.icmp "slt" %[[DONE]], %[[N]] : i64
// CHECK: %[[LEFT:\d+]] = llvm.sub %[[N]], %[[DONE]] : i64
// CHECK-NEXT: %[[COUNT:\d+]] = llvm.call_intrinsic "llvm.smin.i64"(%[[DEPTH]], %[[LEFT]])
// CHECK: llvm.mul %{{\d+}}, %[[THREAD]] : i64
// CHECK-NEXT: llvm.sdiv %{{\d+}}, %[[THREADS]] : i64
// CHECK: llvm.call @loop0.part(%[[FIRST]], %[[SECOND]], %[[COUNT]], {{.*}})
// CHECK-NEXT: llvm.cond_br %[[TEAM]], ^[[WAIT:bb\d+]], ^[[ON:bb\d+]]
// CHECK-NEXT: ^[[WAIT]]:
// CHECK-NEXT: llvm.call @timetile.barrier(%[[BARRIER]]) : (!llvm.ptr) -> i32
// CHECK: ^[[TURN:bb\d+]](%[[T:\d+]]: i64, %[[ONE:\d+]]: !llvm.ptr, %[[OTHER:\d+]]: !llvm.ptr):
// CHECK-NEXT: llvm.icmp "slt" %[[T]], %[[COUNT]] : i64
// CHECK: llvm.br ^[[TURN]](%{{\d+}}, %[[OTHER]], %[[ONE]] : i64, !llvm.ptr, !llvm.ptr)

// Two axes, two types, and fields of different shapes: a field's own strides lead to its cells. A field that is read
// and written is one pointer.
// CHECK: llvm.func internal @loop1.update0(%[[U:\d+]]: !llvm.ptr {llvm.noalias}, %[[W:\d+]]: !llvm.ptr {llvm.noalias}, %[[K:\d+]]: f64, %{{\d+}}: i64, %{{\d+}}: i64, %{{\d+}}: i64, %{{\d+}}: i64) {
// CHECK: %[[SIXTEEN:\d+]] = llvm.mlir.constant(16) : i64
// CHECK: %[[TWENTY:\d+]] = llvm.mlir.constant(20) : i64
// CHECK: llvm.mul %[[I:\d+]], %[[TWENTY]] : i64
// CHECK: llvm.getelementptr %[[U]]
// CHECK: llvm.mul %[[I]], %[[SIXTEEN]] : i64
// CHECK: llvm.getelementptr %[[W]]
// CHECK: llvm.fpext %{{\d+}} : f32 to f64
// CHECK: llvm.call @timetile.exp(
// CHECK: llvm.sitofp
// CHECK: llvm.intr.fma(%{{\d+}}, %[[K]], %{{\d+}})
// CHECK: llvm.fcmp "uno"
// CHECK: llvm.fptrunc %{{\d+}} : f64 to f32
// CHECK: llvm.store %{{\d+}}, %{{\d+}} {alignment = 1 : i64} : f32, !llvm.ptr
// CHECK: llvm.store %{{\d+}}, %{{\d+}} {alignment = 1 : i64} : f64, !llvm.ptr
