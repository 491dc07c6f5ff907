// RUN: xdsl-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Keywords unknown to MLIR's nvvm dialect are refused, with a list of the known keywords, and so are
// operands of a wrong type.

func.func @shuffle_kind(%m: i32) {
  // CHECK: expected one of bfly, up, down, idx, got left
  %0 = "nvvm.shfl.sync"(%m, %m, %m, %m) <{kind = #nvvm.shfl_kind<left>}> : (i32, i32, i32, i32) -> i32
  func.return
}

// -----

func.func @reduction_kind(%m: i32) {
  // CHECK: expected one of add, and, max, min, or, umax, umin, xor, got mean
  %0 = "nvvm.redux.sync"(%m, %m) <{kind = #nvvm.reduction_kind<mean>}> : (i32, i32) -> i32
  func.return
}

// -----

func.func @vote_kind(%m: i32, %p: i1) {
  // CHECK: expected one of any, all, uni, got most
  %0 = "nvvm.vote.sync"(%m, %p) <{kind = #nvvm.vote_sync_kind<most>}> : (i32, i1) -> i1
  func.return
}

// -----

func.func @cache_modifier(%s: !llvm.ptr<3>, %p: !llvm.ptr<1>) {
  // CHECK: expected one of ca, cg, cs, lu, cv, got all
  "nvvm.cp.async.shared.global"(%s, %p) <{size = 16 : i32, modifier = #nvvm.load_cache_modifier<all>}> : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  func.return
}

// -----

func.func @shuffle_of_eight_bytes(%m: i32, %v: f64) {
  // CHECK: operand 'val' at position 1 does not verify
  %0 = "nvvm.shfl.sync"(%m, %v, %m, %m) <{kind = #nvvm.shfl_kind<up>}> : (i32, f64, i32, i32) -> i32
  func.return
}
