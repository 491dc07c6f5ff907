// RUN: xdsl-opt %s -t ptx | filecheck %s
// RUN: xdsl-opt %s -t 'ptx{arch=sm_80}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=AMPERE

// Kernels with arrivals and waits of warps, or with accesses to other blocks of a cluster. An architecture
// without such instructions is refused.

// AMPERE: nvvm.cluster.arrive in @halves: sm_80 has no instruction for the synchronisation; use sync=barrier and tiles of a block, or sync=grid and tiles of the device

// Warps arrive and wait; blocks of a cluster reach each other's shared memory.
// CHECK-LABEL: .visible .entry halves(
// CHECK:         .maxntid 256, 1, 1
// CHECK-NEXT:    .minnctapersm 1
// CHECK-NEXT:    .explicitcluster
// CHECK-NEXT:    .reqnctapercluster 2, 1, 1
// CHECK:         mov.u32 [[w:%r[0-9]+]], dynamic_shared;
llvm.func @halves(%n: i32, %rank: i32, %v: f64, %m: i1) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
  %w = simt.shared at 0 : !llvm.ptr<3>
  // CHECK-NEXT: mbarrier.init.shared.b64 {{\[}}[[w]]], [[n:%r[0-9]+]];
  "nvvm.mbarrier.init.shared"(%w, %n) : (!llvm.ptr<3>, i32) -> ()
  // CHECK-NEXT: fence.mbarrier_init.release.cluster;
  "nvvm.fence.mbarrier.init"() : () -> ()
  // CHECK-NEXT: barrier.cluster.arrive.aligned;
  "nvvm.cluster.arrive"() : () -> ()
  // CHECK-NEXT: barrier.cluster.wait.aligned;
  "nvvm.cluster.wait"() : () -> ()
  // CHECK-NEXT: mapa.shared::cluster.u32 [[peer:%r[0-9]+]], [[w]], %r{{[0-9]+}};
  %peer = "nvvm.mapa"(%w, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  // CHECK-NEXT: @%p{{[0-9]+}} st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 {{\[}}[[peer]]+32], {[[v:%fd[0-9]+]], [[v]]}, {{\[}}[[peer]]];
  simt.send %v, %v to %peer[4] mask %m arrivals %peer phase %n
  // CHECK-NEXT: mbarrier.arrive.expect_tx.shared.b64 %rd{{[0-9]+}}, {{\[}}[[w]]], [[n]];
  "nvvm.mbarrier.arrive.expect_tx.shared"(%w, %n) : (!llvm.ptr<3>, i32) -> ()
  // CHECK-NEXT: mbarrier.arrive.shared.b64 %rd{{[0-9]+}}, {{\[}}[[w]]];
  %s = "nvvm.mbarrier.arrive.shared"(%w) : (!llvm.ptr<3>) -> i64
  // CHECK-NEXT: [[again:.wait_[0-9]+]]:
  // CHECK-NEXT: mbarrier.try_wait.parity.shared.b64 [[done:%p[0-9]+]], {{\[}}[[w]]], [[n]];
  // CHECK-NEXT: @!{{.*}} bra {{.*}}wait_
  "nvvm.mbarrier.try_wait.parity.shared"(%w, %n, %n) : (!llvm.ptr<3>, i32, i32) -> ()
  // CHECK-NEXT: ret;
  llvm.return
}
