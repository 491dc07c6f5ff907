// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt | filecheck %s

// Every operation and attribute of the nvvm mirror prints, and parses back. Operations print
// generically, as real MLIR reads them in every release, with MLIR's names of operations, properties
// and keywords.

// CHECK-LABEL: func.func @threads
func.func @threads() {
  // CHECK-NEXT: %t = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
  %t = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
  // CHECK-NEXT: %b = "nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
  %b = "nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
  func.return
}

// CHECK-LABEL: func.func @waits
func.func @waits(%id: i32, %count: i32, %mask: i32) {
  // CHECK-NEXT: "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
  "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
  // CHECK-NEXT: "nvvm.barrier"(%id, %count) <{operandSegmentSizes = array<i32: 1, 1>}> : (i32, i32) -> ()
  "nvvm.barrier"(%id, %count) <{operandSegmentSizes = array<i32: 1, 1>}> : (i32, i32) -> ()
  // CHECK-NEXT: "nvvm.bar.warp.sync"(%mask) : (i32) -> ()
  "nvvm.bar.warp.sync"(%mask) : (i32) -> ()
  func.return
}

// CHECK-LABEL: func.func @exchanges
func.func @exchanges(%mask: i32, %v: i32, %f: f32, %delta: i32, %clamp: i32, %p: i1) {
  // CHECK-NEXT: "nvvm.shfl.sync"(%mask, %v, %delta, %clamp) <{kind = #nvvm.shfl_kind<up>}> : (i32, i32, i32, i32) -> i32
  %0 = "nvvm.shfl.sync"(%mask, %v, %delta, %clamp) <{kind = #nvvm.shfl_kind<up>}> : (i32, i32, i32, i32) -> i32
  // CHECK-NEXT: "nvvm.shfl.sync"(%mask, %f, %delta, %clamp) <{kind = #nvvm.shfl_kind<down>}> : (i32, f32, i32, i32) -> f32
  %1 = "nvvm.shfl.sync"(%mask, %f, %delta, %clamp) <{kind = #nvvm.shfl_kind<down>}> : (i32, f32, i32, i32) -> f32
  // CHECK-NEXT: kind = #nvvm.shfl_kind<bfly>
  %2 = "nvvm.shfl.sync"(%mask, %v, %delta, %clamp) <{kind = #nvvm.shfl_kind<bfly>}> : (i32, i32, i32, i32) -> i32
  // CHECK-NEXT: kind = #nvvm.shfl_kind<idx>
  %3 = "nvvm.shfl.sync"(%mask, %v, %delta, %clamp) <{kind = #nvvm.shfl_kind<idx>}> : (i32, i32, i32, i32) -> i32
  // CHECK-NEXT: "nvvm.redux.sync"(%v, %mask) <{kind = #nvvm.reduction_kind<min>}> : (i32, i32) -> i32
  %4 = "nvvm.redux.sync"(%v, %mask) <{kind = #nvvm.reduction_kind<min>}> : (i32, i32) -> i32
  // CHECK-NEXT: kind = #nvvm.reduction_kind<umax>
  %5 = "nvvm.redux.sync"(%v, %mask) <{kind = #nvvm.reduction_kind<umax>}> : (i32, i32) -> i32
  // CHECK-NEXT: "nvvm.vote.sync"(%mask, %p) <{kind = #nvvm.vote_sync_kind<all>}> : (i32, i1) -> i1
  %6 = "nvvm.vote.sync"(%mask, %p) <{kind = #nvvm.vote_sync_kind<all>}> : (i32, i1) -> i1
  // CHECK-NEXT: kind = #nvvm.vote_sync_kind<any>
  %7 = "nvvm.vote.sync"(%mask, %p) <{kind = #nvvm.vote_sync_kind<any>}> : (i32, i1) -> i1
  func.return
}

// CHECK-LABEL: func.func @copies
func.func @copies(%ring: !llvm.ptr<3>, %field: !llvm.ptr<1>, %taken: i32) {
  // CHECK-NEXT: "nvvm.cp.async.shared.global"(%ring, %field) <{size = 16 : i32, modifier = #nvvm.load_cache_modifier<cg>}> : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  "nvvm.cp.async.shared.global"(%ring, %field) <{size = 16 : i32, modifier = #nvvm.load_cache_modifier<cg>}> : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  // CHECK-NEXT: "nvvm.cp.async.shared.global"(%ring, %field, %taken) <{size = 8 : i32, modifier = #nvvm.load_cache_modifier<ca>}> : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  "nvvm.cp.async.shared.global"(%ring, %field, %taken) <{size = 8 : i32, modifier = #nvvm.load_cache_modifier<ca>}> : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  // CHECK-NEXT: "nvvm.cp.async.commit.group"() : () -> ()
  "nvvm.cp.async.commit.group"() : () -> ()
  // CHECK-NEXT: "nvvm.cp.async.wait.group"() <{n = 2 : i32}> : () -> ()
  "nvvm.cp.async.wait.group"() <{n = 2 : i32}> : () -> ()
  func.return
}

// CHECK-LABEL: func.func @arrivals
func.func @arrivals(%b: !llvm.ptr<3>, %n: i32, %rank: i32) {
  // CHECK-NEXT: "nvvm.mbarrier.init.shared"(%b, %n) : (!llvm.ptr<3>, i32) -> ()
  "nvvm.mbarrier.init.shared"(%b, %n) : (!llvm.ptr<3>, i32) -> ()
  // CHECK-NEXT: "nvvm.fence.mbarrier.init"() : () -> ()
  "nvvm.fence.mbarrier.init"() : () -> ()
  // CHECK-NEXT: "nvvm.cluster.arrive"() : () -> ()
  "nvvm.cluster.arrive"() : () -> ()
  // CHECK-NEXT: "nvvm.cluster.wait"() : () -> ()
  "nvvm.cluster.wait"() : () -> ()
  // CHECK-NEXT: %s = "nvvm.mbarrier.arrive.shared"(%b) : (!llvm.ptr<3>) -> i64
  %s = "nvvm.mbarrier.arrive.shared"(%b) : (!llvm.ptr<3>) -> i64
  // CHECK-NEXT: "nvvm.mbarrier.arrive.expect_tx.shared"(%b, %n) : (!llvm.ptr<3>, i32) -> ()
  "nvvm.mbarrier.arrive.expect_tx.shared"(%b, %n) : (!llvm.ptr<3>, i32) -> ()
  // CHECK-NEXT: "nvvm.mbarrier.try_wait.parity.shared"(%b, %n, %n) : (!llvm.ptr<3>, i32, i32) -> ()
  "nvvm.mbarrier.try_wait.parity.shared"(%b, %n, %n) : (!llvm.ptr<3>, i32, i32) -> ()
  // CHECK-NEXT: %p = "nvvm.mapa"(%b, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  %p = "nvvm.mapa"(%b, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  func.return
}
