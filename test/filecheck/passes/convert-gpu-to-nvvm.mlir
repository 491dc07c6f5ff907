// RUN: xdsl-opt %s -p convert-gpu-to-nvvm --split-input-file --verify-diagnostics | filecheck %s

// Threads, shuffles, copies and pointers as the hardware has them. Arithmetic, control flow and masks
// stay as they are, and of the gpu dialect only the module is left.

// Buffers become pointers of their address space; how to launch is said with NVVM's attributes.
// CHECK-LABEL: "gpu.module"() <{sym_name = "k"}>
// CHECK-NEXT:    llvm.func @k(%a: !llvm.ptr<1>, %dt: f64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
// CHECK-DAG:     %[[full:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[one:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[down:.*]] = arith.constant 31 : i32
// CHECK-DAG:     %[[none:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[bytes:.*]] = arith.constant 16 : i32
"gpu.module"() <{sym_name = "k"}> ({
  "gpu.func"() <{function_type = (memref<4096xf64, 1 : i64>, f64) -> (), kernel}> ({
  ^bb0(%a: memref<4096xf64, 1 : i64>, %dt: f64):
    // CHECK:      %[[t:.*]] = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
    %0 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %t = arith.index_cast %0 : index to i32
    // CHECK-NEXT: %[[b:.*]] = "nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
    %1 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
    %b = arith.index_cast %1 : index to i32
    // A reduction over the warp lies in a uniform register.
    // CHECK-NEXT: "nvvm.redux.sync"(%[[b]], %[[full]]) <{kind = #nvvm.reduction_kind<min>}>
    %u = simt.uniform %b : i32
    %m = arith.cmpi ult, %t, %b : i32
    // CHECK:      "nvvm.vote.sync"(%[[full]], %m) <{kind = #nvvm.vote_sync_kind<all>}>
    %all = simt.all %m : i1
    // CHECK:      %ring = simt.shared at 0 : !llvm.ptr<3>
    %ring = simt.shared at 0 : memref<512xf64, 3 : i64>

    // One pointer serves all accesses of a block by the same index; offsets stay on the accesses.
    // CHECK-NEXT: %[[p:.*]] = llvm.getelementptr %a[%[[t]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f64
    // CHECK-NEXT: %v, %w = simt.load %[[p]][2] mask %m : f64, f64
    %v, %w = simt.load %a[%t + 2] mask %m : f64, f64
    // CHECK-NEXT: simt.store %v, %w to %[[p]][-4] mask %m
    simt.store %v, %w to %a[%t + -4] mask %m
    // CHECK-NEXT: %o = simt.override %v from %[[p]][1] mask %m
    %o = simt.override %v from %a[%t + 1] mask %m
    // CHECK-NEXT: simt.prefetch %[[p]][-2] mask %m : f64
    simt.prefetch %a[%t + -2] mask %m : f64
    // Without an index the buffer's own pointer does.
    // CHECK-NEXT: simt.prefetch %a[4] : f64
    simt.prefetch %a[4] : f64

    // Eight bytes are shuffled as two halves, four bytes as they are.
    // CHECK-NEXT: %[[lo:.*]], %[[hi:.*]] = simt.split %o : f64
    // CHECK-NEXT: %[[l:.*]] = "nvvm.shfl.sync"(%[[full]], %[[lo]], %[[one]], %[[none]]) <{kind = #nvvm.shfl_kind<up>}>
    // CHECK-NEXT: %[[h:.*]] = "nvvm.shfl.sync"(%[[full]], %[[hi]], %[[one]], %[[none]]) <{kind = #nvvm.shfl_kind<up>}>
    // CHECK-NEXT: %[[s:.*]] = simt.join %[[l]], %[[h]] : f64
    %s = simt.shuffle %o delta -1 : f64
    // CHECK-NEXT: %f = arith.truncf %[[s]] : f64 to f32
    %f = arith.truncf %s : f64 to f32
    // CHECK-NEXT: %g = "nvvm.shfl.sync"(%[[full]], %f, %[[one]], %[[down]]) <{kind = #nvvm.shfl_kind<down>}>
    %g = simt.shuffle %f delta 1 : f32
    // A shuffle reads the value of the lane with the given number.
    // CHECK-NEXT: "nvvm.shfl.sync"(%[[full]], %f, %[[t]], %[[down]]) <{kind = #nvvm.shfl_kind<idx>}>
    %named = simt.pick %f lane %t : f32

    // A copy under a mask reads all of its bytes or none. Only 16-byte copies can bypass L1.
    // CHECK:      %[[to:.*]] = llvm.getelementptr %ring[%[[t]]]
    // CHECK-NEXT: %[[from:.*]] = llvm.getelementptr %[[p]][2]
    // CHECK-NEXT: %[[taken:.*]] = arith.select %m, %[[bytes]], %[[none]] : i32
    // CHECK-NEXT: "nvvm.cp.async.shared.global"(%[[to]], %[[from]], %[[taken]]) <{size = 16 : i32, modifier = #nvvm.load_cache_modifier<cg>
    simt.copy_async %ring[%t + 0], %a[%t + 2] bytes 16 mask %m
    // CHECK-NEXT: %[[other:.*]] = llvm.getelementptr %ring[8]
    // CHECK-NEXT: "nvvm.cp.async.shared.global"(%[[other]], %[[p]]) <{size = 8 : i32, modifier = #nvvm.load_cache_modifier<ca>
    simt.copy_async %ring[8], %a[%t + 0] bytes 8
    // CHECK-NEXT: "nvvm.cp.async.commit.group"() : () -> ()
    "nvvm.cp.async.commit.group"() : () -> ()
    // CHECK-NEXT: "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}>
    "gpu.barrier"() : () -> ()

    // Memory of another block has a pointer of its own. Remaining marks are erased.
    // CHECK-NEXT: scf.if %m {
    scf.if %m {
      // CHECK-NEXT: %[[inner:.*]] = llvm.getelementptr %a[%[[t]]]
      // CHECK-NEXT: simt.load %[[inner]][0] : f64
      simt.mark step 0 stage 0 row 0
      %x = simt.load %a[%t + 0] : f64
    }
    // CHECK:      arith.mulf %[[s]], %dt : f64
    %y = arith.mulf %s, %dt : f64
    // CHECK-NEXT: llvm.return
    "gpu.return"() : () -> ()
  }) {sym_name = "k", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
// CHECK:       tile.launch = #tile.launch<steps 1, roles [], grid 9, block 128, shared_bytes 0, occupancy 2>
}) {tile.launch = #tile.launch<steps 1, roles [], grid 9, block 128, shared_bytes 0, occupancy 2>} : () -> ()

// -----

"gpu.module"() <{sym_name = "two_dimensional"}> ({
  "gpu.func"() <{function_type = () -> (), kernel}> ({
    // CHECK: gpu.thread_id in @two_dimensional: kernels are one-dimensional; use dimension x
    %0 = "gpu.thread_id"() <{dimension = #gpu<dim y>}> : () -> index
    "gpu.return"() : () -> ()
  }) {sym_name = "two_dimensional", gpu.known_block_size = array<i32: 32, 1, 1>} : () -> ()
}) : () -> ()

// -----

// CHECK: gpu.func in @unnumbered: it names no number of threads; give it gpu.known_block_size
"gpu.module"() <{sym_name = "unnumbered"}> ({
  "gpu.func"() <{function_type = () -> (), kernel}> ({
    "gpu.return"() : () -> ()
  }) {sym_name = "unnumbered"} : () -> ()
}) : () -> ()

// -----

"gpu.module"() <{sym_name = "wide_numbers"}> ({
  "gpu.func"() <{function_type = () -> (), kernel}> ({
    // CHECK: gpu.block_id in @wide_numbers: thread and block numbers are used as i32; cast the numbers
    %0 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
    %1 = arith.addi %0, %0 : index
    "gpu.return"() : () -> ()
  }) {sym_name = "wide_numbers", gpu.known_block_size = array<i32: 32, 1, 1>} : () -> ()
}) : () -> ()

// -----

// Words in which warps arrive become mbarriers; of two words the phase's last bit chooses one, and the
// next bit is its parity.

// CHECK-LABEL: llvm.func @halves
// CHECK-SAME:  nvvm.cluster_dim = array<i32: 2, 1, 1>
"gpu.module"() <{sym_name = "halves"}> ({
  "gpu.func"() <{function_type = (i32, i32, f64) -> (), kernel}> ({
  ^bb0(%p: i32, %n: i32, %v: f64):
    // CHECK:      %w = simt.shared at 0 : !llvm.ptr<3>
    %w = simt.shared at 0 : memref<2xi64, 3>
    // CHECK:      "nvvm.mbarrier.init.shared"(%w, %{{.*}}) : (!llvm.ptr<3>, i32) -> ()
    // CHECK-NEXT: llvm.getelementptr %w[1]
    // CHECK-NEXT: "nvvm.mbarrier.init.shared"
    // CHECK-NEXT: "nvvm.fence.mbarrier.init"
    simt.expect %w warps 4
    // CHECK-NEXT: "nvvm.cluster.arrive"
    // CHECK-NEXT: "nvvm.cluster.wait"
    simt.cluster_barrier
    // CHECK-NEXT: %[[peer:.*]] = "nvvm.mapa"(%w, %n) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
    %peer = simt.peer %w block %n : memref<2xi64, 3> -> memref<2xi64, 7>
    // CHECK-NEXT: %[[turn:.*]] = arith.andi %p, %{{.*}} : i32
    // CHECK-NEXT: %[[word:.*]] = llvm.getelementptr %w[%[[turn]]]
    // CHECK-NEXT: "nvvm.mbarrier.arrive.expect_tx.shared"(%[[word]], %n)
    simt.arrive %w phase %p bytes %n : memref<2xi64, 3>
    // CHECK-NEXT: arith.andi %p
    // CHECK-NEXT: %[[word:.*]] = llvm.getelementptr %w[
    // CHECK-NEXT: %[[half:.*]] = arith.shrui %p, %{{.*}} : i32
    // CHECK-NEXT: %[[parity:.*]] = arith.andi %[[half]], %{{.*}} : i32
    // CHECK-NEXT: "nvvm.mbarrier.try_wait.parity.shared"(%[[word]], %[[parity]], %{{.*}})
    simt.wait %w phase %p : memref<2xi64, 3>
    // CHECK-NEXT: llvm.return
    "gpu.return"() : () -> ()
  }) {sym_name = "halves", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
}) {tile.launch = #tile.launch<steps 1, roles [], grid 4, block 128, shared_bytes 16, occupancy 1, cluster 2>} : () -> ()

// -----

// Words of messages are found by pointers, where the place of a message is computed.

// CHECK-LABEL: llvm.func @messages(%buffer: !llvm.ptr<1>, %i: i32, %n: i32)
"gpu.module"() <{sym_name = "messages"}> ({
  "gpu.func"() <{function_type = (memref<512xi64, 1>, i32, i32) -> (), kernel}> ({
  ^bb0(%buffer: memref<512xi64, 1>, %i: i32, %n: i32):
    // CHECK-NEXT: %[[at:.*]] = llvm.getelementptr %buffer[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
    // CHECK-NEXT: %a, %b = simt.take %[[at]][0, 64] number %n : f64, f64
    %a, %b = simt.take %buffer[%i + 0, 64] number %n : f64, f64
    // CHECK-NEXT: simt.post %a, %b to %[[at]][128, 192] number %n
    simt.post %a, %b to %buffer[%i + 128, 192] number %n
    // CHECK-NEXT: %c = simt.take %buffer[32] number %n : f32
    %c = simt.take %buffer[32] number %n : f32
    // CHECK-NEXT: simt.post %c to %buffer[40] number %n
    simt.post %c to %buffer[40] number %n
    // Words ordered by barriers have no number. The word in which blocks count arrivals is found alike.
    // CHECK-NEXT: simt.post %c to %[[at]][256]
    simt.post %c to %buffer[%i + 256]
    // CHECK-NEXT: simt.tile_barrier %[[at]][] number %n blocks 3
    simt.tile_barrier %buffer[%i] number %n blocks 3
    // CHECK-NEXT: %d = simt.take %[[at]][288] : f32
    %d = simt.take %buffer[%i + 288] : f32
    // CHECK-NEXT: simt.tile_barrier %buffer[] number %n blocks 3
    simt.tile_barrier %buffer[] number %n blocks 3
    // CHECK-NEXT: llvm.return
    "gpu.return"() : () -> ()
  }) {sym_name = "messages", gpu.known_block_size = array<i32: 64, 1, 1>} : () -> ()
}) : () -> ()

// -----

// An access has offsets below 2^31 bytes; what lies farther is added to the pointer first.
// CHECK-LABEL: llvm.func @far(
"gpu.module"() <{sym_name = "far_module"}> ({
  "gpu.func"() <{function_type = (memref<4294967296xf64, 1 : i64>, i64) -> (), kernel}> ({
  ^bb0(%a: memref<4294967296xf64, 1 : i64>, %t: i64):
    // CHECK:      %[[p:.*]] = llvm.getelementptr %a[%t]
    // CHECK-NEXT: %v = simt.load %[[p]][268435455] : f64
    %v = simt.load %a[%t + 268435455] : f64
    // CHECK-NEXT: %[[far:.*]] = arith.constant -268435456 : i64
    // CHECK-NEXT: %[[q:.*]] = llvm.getelementptr %[[p]][%[[far]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f64
    // CHECK-NEXT: simt.store %v to %[[q]]
    simt.store %v to %a[%t + -268435456]
    "gpu.return"() : () -> ()
  }) {sym_name = "far", gpu.known_block_size = array<i32: 32, 1, 1>} : () -> ()
}) : () -> ()

// -----

// In shared memory, what a loop leaves alone is added to the pointer ahead of it, behind the slice that it points into;
// what is multiplied by a constant counts arrays of so many cells.
// CHECK-LABEL: llvm.func @slots(
"gpu.module"() <{sym_name = "slots_module"}> ({
  "gpu.func"() <{function_type = (i32) -> (), kernel}> ({
  ^bb0(%steps: i32):
    // CHECK:      %w = arith.shrui %steps, %{{.*}} : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %seven = arith.constant 7 : i32
    %cells = arith.constant 128 : i32
    %w = arith.shrui %steps, %seven : i32
    // CHECK-NEXT: %ring = simt.shared at 0 : !llvm.ptr<3>
    // CHECK-NEXT: %[[own:.*]] = llvm.getelementptr %ring[%w] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f64
    // CHECK-NEXT: scf.for %n =
    %ring = simt.shared at 0 : memref<1024xf64, 3 : i64>
    scf.for %n = %zero to %steps step %one : i32 {
      // CHECK-NEXT: %s = arith.andi %n, %{{.*}} : i32
      %s = arith.andi %n, %seven : i32
      %o = arith.muli %s, %cells : i32
      %i = arith.addi %w, %o : i32
      // CHECK:      %[[at:.*]] = llvm.getelementptr %[[own]][%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<128 x f64>
      // CHECK-NEXT: simt.load %[[at]][2] : f64
      %v = simt.load %ring[%i + 2] : f64
      // CHECK-NEXT: simt.store %v to %[[own]][4]
      simt.store %v to %ring[%w + 4]
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "slots", gpu.known_block_size = array<i32: 32, 1, 1>} : () -> ()
}) : () -> ()

// -----

// A loop with waits between warps makes pointers at their uses: such loops need the registers.
// CHECK-LABEL: llvm.func @meets(
"gpu.module"() <{sym_name = "meets_module"}> ({
  "gpu.func"() <{function_type = (i32) -> (), kernel}> ({
  ^bb0(%steps: i32):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %seven = arith.constant 7 : i32
    %w = arith.shrui %steps, %seven : i32
    // CHECK:      %ring = simt.shared at 0 : !llvm.ptr<3>
    // CHECK-NEXT: scf.for %n =
    %ring = simt.shared at 0 : memref<1024xf64, 3 : i64>
    scf.for %n = %zero to %steps step %one : i32 {
      // CHECK-NEXT: %[[own:.*]] = llvm.getelementptr %ring[%w] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f64
      // CHECK-NEXT: simt.load %[[own]][4] : f64
      %v = simt.load %ring[%w + 4] : f64
      // CHECK-NEXT: "nvvm.barrier"()
      "gpu.barrier"() : () -> ()
      // CHECK-NEXT: %i = arith.addi %w, %n : i32
      // CHECK-NEXT: %[[at:.*]] = llvm.getelementptr %ring[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f64
      // CHECK-NEXT: simt.store %v to %[[at]][2]
      %i = arith.addi %w, %n : i32
      simt.store %v to %ring[%i + 2]
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "meets", gpu.known_block_size = array<i32: 32, 1, 1>} : () -> ()
}) : () -> ()

// -----

// LLVM has no index: an argument of that type has 64 bits.
// CHECK-LABEL: llvm.func @counts(
// CHECK-SAME:    %n: i64, %on: i1)
// CHECK-NEXT:    %[[count:.*]] = arith.index_cast %n : i64 to index
// CHECK-NEXT:    arith.addi %[[count]], %[[count]] : index
"gpu.module"() <{sym_name = "counts_module"}> ({
  "gpu.func"() <{function_type = (index, i1) -> (), kernel}> ({
  ^bb0(%n: index, %on: i1):
    %twice = arith.addi %n, %n : index
    "gpu.return"() : () -> ()
  }) {sym_name = "counts", gpu.known_block_size = array<i32: 32, 1, 1>} : () -> ()
}) : () -> ()
