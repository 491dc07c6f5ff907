// RUN: xdsl-opt %s -t ptx --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -t 'ptx{arch=sm_20}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ARCH
// RUN: xdsl-opt %s -t 'ptx{arch=sm_80}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=SMALLER
// RUN: xdsl-opt %s -t 'ptx{version="eight"}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=VERSION

// An operation without PTX is refused in a sentence: the operation, the kernel, and the way out.

// CHECK: there is no kernel to print; run the pipeline up to convert-gpu-to-nvvm first
func.func @host() {
  func.return
}

// -----

// ARCH: the architecture sm_20 is not known; use sm_90 or sm_80 or sm_120 or sm_100 or sm_89 or sm_86, or a part: h200, h100-sxm
// VERSION: ptx: a version is two numbers, like 8.1, got eight
llvm.func @power(%a: f64, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
  // CHECK: math.fpowi in @power: the operation has no PTX form; use operations of arith, math, scf, nvvm and simt
  %0 = math.fpowi %a, %n : f64, i32
  llvm.return
}

// -----

llvm.func @vector() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
  // CHECK: arith.constant in @vector: constants are integers and floats
  %0 = arith.constant dense<1.0> : vector<2xf64>
  llvm.return
}

// -----

// What was lowered for a GPU with more shared memory.

"gpu.module"() <{sym_name = "large"}> ({
  // SMALLER: llvm.func in @large: the kernel takes 200000 bytes of shared memory a block, and sm_80 has 166912; compile for the GPU (arch=sm_80)
  llvm.func @large() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
    llvm.return
  }
}) {tile.launch = #tile.launch<steps 1, roles [], grid 1, block 32, shared_bytes 200000, occupancy 1>} : () -> ()

// -----

"gpu.module"() <{sym_name = "other_threads"}> ({
  // CHECK: llvm.func in @other_threads: its nvvm.maxntid says 64 and its #tile.launch 32; give both one number
  llvm.func @other_threads() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.minctasm = 1 : i32} {
    llvm.return
  }
}) {tile.launch = #tile.launch<steps 1, roles [], grid 1, block 32, shared_bytes 0, occupancy 1>} : () -> ()

// -----

"gpu.module"() <{sym_name = "other_cluster"}> ({
  // CHECK: llvm.func in @other_cluster: its nvvm.cluster_dim says 1 and its #tile.launch 2; give both one number
  llvm.func @other_cluster() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32} {
    llvm.return
  }
}) {tile.launch = #tile.launch<steps 1, roles [], grid 2, block 32, shared_bytes 0, occupancy 1, cluster 2>} : () -> ()
