// RUN: xdsl-opt %s -t ptx | filecheck %s

// Messages between blocks are words of 64 bits: four bytes of a cell, and four bytes with the number of the
// message. Each access takes a whole word, so a word tells by its number that it has arrived.

// CHECK-LABEL: .visible .entry doubles(
// CHECK:         ld.param.u32 [[number:%r[0-9]+]], [doubles_param_1];
llvm.func @doubles(%buffer: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.minctasm = 1 : i32} {
  // All words are read again until each has the number, in all lanes of the warp; of a cell of 8 bytes both
  // words are read at once.
  // CHECK-NEXT: [[again:.take_[0-9]+]]:
  // CHECK-NEXT: ld.relaxed.gpu.global.v2.b64 {[[w0:%rd[0-9]+]], [[w1:%rd[0-9]+]]}, {{\[}}[[buffer:%rd[0-9]+]]];
  // CHECK-NEXT: mov.b64 {[[lo0:%r[0-9]+]], [[n0:%r[0-9]+]]}, [[w0]];
  // CHECK-NEXT: mov.b64 {[[hi0:%r[0-9]+]], [[n1:%r[0-9]+]]}, [[w1]];
  // CHECK-NEXT: ld.relaxed.gpu.global.v2.b64 {[[w2:%rd[0-9]+]], [[w3:%rd[0-9]+]]}, {{\[}}[[buffer]]+512];
  // CHECK-NEXT: mov.b64 {[[lo1:%r[0-9]+]], [[n2:%r[0-9]+]]}, [[w2]];
  // CHECK-NEXT: mov.b64 {[[hi1:%r[0-9]+]], [[n3:%r[0-9]+]]}, [[w3]];
  // CHECK-NEXT: setp.ne.u32 [[m0:%p[0-9]+]], [[n0]], [[number]];
  // CHECK-NEXT: setp.ne.or.u32 [[m1:%p[0-9]+]], [[n1]], [[number]], [[m0]];
  // CHECK-NEXT: setp.ne.or.u32 [[m2:%p[0-9]+]], [[n2]], [[number]], [[m1]];
  // CHECK-NEXT: setp.ne.or.u32 [[m3:%p[0-9]+]], [[n3]], [[number]], [[m2]];
  // CHECK-NEXT: vote.sync.any.pred [[any:%p[0-9]+]], [[m3]], -1;
  // CHECK-NEXT: @[[any]] bra {{.*}}take_
  // CHECK-NEXT: mov.b64 [[a:%fd[0-9]+]], {[[lo0]], [[hi0]]};
  // CHECK-NEXT: mov.b64 [[b:%fd[0-9]+]], {[[lo1]], [[hi1]]};
  %a, %b = simt.take %buffer[0, 64] number %n : f64, f64
  // CHECK-NEXT: mov.b64 {[[lo:%r[0-9]+]], [[hi:%r[0-9]+]]}, [[b]];
  // CHECK-NEXT: mov.b64 [[v0:%rd[0-9]+]], {[[lo]], [[number]]};
  // CHECK-NEXT: mov.b64 [[v1:%rd[0-9]+]], {[[hi]], [[number]]};
  // CHECK-NEXT: st.relaxed.gpu.global.v2.b64 {{\[}}[[buffer]]+1024], {[[v0]], [[v1]]};
  // CHECK-NEXT: mov.b64 {[[lo:%r[0-9]+]], [[hi:%r[0-9]+]]}, [[a]];
  // CHECK-NEXT: mov.b64
  // CHECK-NEXT: mov.b64
  // CHECK-NEXT: st.relaxed.gpu.global.v2.b64 {{\[}}[[buffer]]+1536], {
  simt.post %b, %a to %buffer[128, 192] number %n
  // CHECK-NEXT: ret;
  llvm.return
}

// CHECK-LABEL: .visible .entry singles(
// CHECK:         ld.param.u32 [[number:%r[0-9]+]], [singles_param_1];
llvm.func @singles(%buffer: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.minctasm = 1 : i32} {
  // CHECK-NEXT: [[again:.take_[0-9]+]]:
  // CHECK-NEXT: ld.relaxed.gpu.global.b64 [[w0:%rd[0-9]+]], {{\[}}[[buffer:%rd[0-9]+]]];
  // CHECK-NEXT: mov.b64 {[[c0:%r[0-9]+]], [[n0:%r[0-9]+]]}, [[w0]];
  // CHECK-NEXT: ld.relaxed.gpu.global.b64 [[w1:%rd[0-9]+]], {{\[}}[[buffer]]+256];
  // CHECK-NEXT: mov.b64 {[[c1:%r[0-9]+]], [[n1:%r[0-9]+]]}, [[w1]];
  // CHECK-NEXT: setp.ne.u32 [[m0:%p[0-9]+]], [[n0]], [[number]];
  // CHECK-NEXT: setp.ne.or.u32 [[m1:%p[0-9]+]], [[n1]], [[number]], [[m0]];
  // CHECK-NEXT: vote.sync.any.pred [[any:%p[0-9]+]], [[m1]], -1;
  // CHECK-NEXT: @[[any]] bra {{.*}}take_
  // CHECK-NEXT: mov.b32 [[a:%f[0-9]+]], [[c0]];
  // CHECK-NEXT: mov.b32 [[b:%f[0-9]+]], [[c1]];
  %a, %b = simt.take %buffer[0, 32] number %n : f32, f32
  // CHECK-NEXT: mov.b64 [[v:%rd[0-9]+]], {[[b]], [[number]]};
  // CHECK-NEXT: st.relaxed.gpu.global.b64 {{\[}}[[buffer]]+512], [[v]];
  simt.post %b to %buffer[64] number %n
  // Message 0 is never sent.
  %zero = arith.constant 0 : i32
  // CHECK:      setp.ne.u32 %p{{[0-9]+}}, %r{{[0-9]+}}, 0;
  %c = simt.take %buffer[0] number %zero : f32
  // CHECK:      ret;
  llvm.return
}

// Where blocks meet at barriers, cells are alone in their words, and need no loop.
// CHECK-LABEL: .visible .entry barriers(
// CHECK:         ld.param.u32 [[number:%r[0-9]+]], [barriers_param_1];
llvm.func @barriers(%buffer: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.minctasm = 1 : i32} {
  // CHECK-NEXT: ld.global.f64 [[a:%fd[0-9]+]], {{\[}}[[buffer:%rd[0-9]+]]];
  // CHECK-NEXT: ld.global.f64 [[b:%fd[0-9]+]], {{\[}}[[buffer]]+256];
  %a, %b = simt.take %buffer[0, 32] : f64, f64
  // CHECK-NEXT: ld.global.f32 [[c:%f[0-9]+]], {{\[}}[[buffer]]+512];
  %c = simt.take %buffer[64] : f32
  // CHECK-NEXT: st.global.f64 {{\[}}[[buffer]]+768], [[b]];
  // CHECK-NEXT: st.global.f64 {{\[}}[[buffer]]+1024], [[a]];
  simt.post %b, %a to %buffer[96, 128]
  // After a barrier of the block, one thread counts the block, and polls until all blocks have come to each
  // barrier so far. The other threads wait for that thread.
  // CHECK-NEXT: bar.sync 0;
  // CHECK-NEXT: mov.u32 [[thread:%r[0-9]+]], %tid.x;
  // CHECK-NEXT: setp.ne.u32 [[test:%p[0-9]+]], [[thread]], 0;
  // CHECK-NEXT: @[[test]] bra [[met:.met_[0-9]+]];
  // CHECK-NEXT: mul.lo.s32 [[wanted:%r[0-9]+]], [[number]], 13;
  // CHECK-NEXT: red.release.gpu.global.add.u32 {{\[}}[[buffer]]], 1;
  // CHECK-NEXT: {{.meet_[0-9]+}}:
  // CHECK-NEXT: ld.acquire.gpu.global.u32 [[seen:%r[0-9]+]], {{\[}}[[buffer]]];
  // CHECK-NEXT: setp.lt.u32 [[test]], [[seen]], [[wanted]];
  // CHECK-NEXT: @[[test]] bra {{.*}}meet_
  // CHECK-NEXT: [[met]]:
  // CHECK-NEXT: bar.sync 0;
  simt.tile_barrier %buffer[] number %n blocks 13
  // CHECK-NEXT: st.global.f32 {{\[}}[[buffer]]+1280], [[c]];
  simt.post %c to %buffer[160]
  // CHECK-NEXT: ret;
  llvm.return
}

// The first word has the number of launches that have ended.

// CHECK-LABEL: .visible .entry launches(
llvm.func @launches(%words: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.minctasm = 1 : i32} {
  // CHECK:      ld.relaxed.gpu.global.u32 [[number:%r[0-9]+]], {{\[}}[[words:%rd[0-9]+]]];
  %n = simt.launches_ended %words : i32
  // CHECK-NEXT: st.relaxed.gpu.global.u32 {{\[}}[[words]]], [[number]];
  simt.end_launch %words number %n
  llvm.return
}
