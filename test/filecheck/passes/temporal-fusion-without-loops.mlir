// RUN: xdsl-opt %s -p "common-halos,temporal-fusion{depths=2},choose-schedule,split-sums,carry-halos,peel-boundaries,store-box,store-beside,plan-launches,lower-tile-to-gpu,order-threads,share-cells,carry-cells,spare-registers,expand-division,convert-gpu-to-nvvm" 2>&1 | filecheck %s

// Passes on time loops and kernels tell that the program has none yet.

func.func @copied(%U: !stencil.field<[0,8]xf64>, %V: !stencil.field<[0,8]xf64>) {
  %u = stencil.load %U : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
  %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %a = stencil.access %x[0] : !stencil.temp<?xf64>
    stencil.return %a : f64
  }
  stencil.store %v to %V(<[0], [8]>) : !stencil.temp<?xf64> to !stencil.field<[0,8]xf64>
  func.return
}

// CHECK:      builtin.module{{.*}}: common-halos changes nothing: the program has no temporal.loop yet; run raise-time-loop before
// CHECK-NEXT: builtin.module{{.*}}: temporal-fusion changes nothing: the program has no temporal.loop yet; run raise-time-loop before
// CHECK-NEXT: builtin.module{{.*}}: choose-schedule changes nothing: the program has no temporal.loop yet; run raise-time-loop before
// CHECK-NEXT: builtin.module{{.*}}: split-sums changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling before
// CHECK-NEXT: builtin.module{{.*}}: carry-halos changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling before
// CHECK-NEXT: builtin.module{{.*}}: peel-boundaries changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling before
// CHECK-NEXT: builtin.module{{.*}}: store-box changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling before
// CHECK-NEXT: builtin.module{{.*}}: store-beside changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling before
// CHECK-NEXT: builtin.module{{.*}}: plan-launches changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling before
// CHECK-NEXT: builtin.module{{.*}}: lower-tile-to-gpu changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling before
// CHECK-NEXT: builtin.module{{.*}}: order-threads changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling,lower-tile-to-gpu before
// CHECK-NEXT: builtin.module{{.*}}: share-cells changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling,lower-tile-to-gpu before
// CHECK-NEXT: builtin.module{{.*}}: carry-cells changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling,lower-tile-to-gpu before
// CHECK-NEXT: builtin.module{{.*}}: spare-registers changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling,lower-tile-to-gpu before
// CHECK-NEXT: builtin.module{{.*}}: expand-division changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling,lower-tile-to-gpu before
// CHECK-NEXT: builtin.module{{.*}}: convert-gpu-to-nvvm changes nothing: the program has no temporal.loop yet; run raise-time-loop,device-tiling,lower-tile-to-gpu before
