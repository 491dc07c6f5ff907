// RUN: xdsl-opt %s -t ptx | filecheck %s
// RUN: not python -c "import sys; sys.modules['cuda.bindings.nvrtc'] = None; from xdsl.tools.xdsl_opt import main; main()" %s -t ptx 2>&1 | filecheck %s --check-prefix=MISSING

// Functions of the mathematical library are CUDA's own: the module holds each once, and kernels call it.

// MISSING: math.exp in @k{{.*}}: PTX has no instruction for the function, and NVRTC, which compiles such functions, is absent; install nvidia-cuda-nvrtc (pip install 'timetile[functions]'), or run it with executor cpu

// CHECK:      .func  (.param .b64 func_retval0) timetile_exp(
// CHECK:      .func  (.param .b32 func_retval0) timetile_powf(
// CHECK-NOT:  .func
// CHECK:      .visible .entry k(
llvm.func @k(%p: !llvm.ptr<1>, %a: f64, %s: f32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32>, nvvm.minctasm = 1 : i32} {
  // CHECK:      .param .f64 argument0;
  // CHECK-NEXT: st.param.f64 [argument0], [[a:%fd[0-9]+]];
  // CHECK-NEXT: .param .f64 result;
  // CHECK-NEXT: call (result), timetile_exp, (argument0);
  // CHECK-NEXT: ld.param.f64 [[e:%fd[0-9]+]], [result];
  // CHECK-NEXT: }
  %0 = math.exp %a : f64
  // CHECK:      st.param.f64 [argument0], [[e]];
  // CHECK:      call (result), timetile_exp, (argument0);
  %1 = math.exp %0 : f64
  // CHECK:      st.param.f32 [argument1], 0f40200000;
  // CHECK-NEXT: .param .f32 result;
  // CHECK-NEXT: call (result), timetile_powf, (argument0, argument1);
  %2 = arith.constant 2.5 : f32
  %3 = math.powf %s, %2 : f32
  llvm.return
}

// A kernel is renamed if its name begins like the names of functions.
// CHECK:      .visible .entry $74$imetile_exp(
llvm.func @timetile_exp(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32>, nvvm.minctasm = 1 : i32} {
  llvm.return
}
