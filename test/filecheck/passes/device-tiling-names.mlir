// RUN: xdsl-opt %s -p 'temporal-fusion{depths=2},device-tiling{tile=warp}' | filecheck %s

// Functions may have the names of kernels: the kernels of @heat then get numbers.

!field = !stencil.field<[0,64]xf64>

// CHECK:       tile.kernel @heat_d2_1(
// CHECK:       tile.kernel @heat_step_1(
// CHECK:       func.func @heat(
// CHECK:         temporal.loop {{.*}} kernels [@heat_d2_1, @heat_step_1]
func.func @heat(%u: !field, %v: !field, %n: index) {
  %a, %b = temporal.loop %n (%x = %u, %y = %v) rotate [1, 0] {
    temporal.update %y = @left(%x[-1]) in <[1], [64]>
  } : !field, !field
  func.return
}
// CHECK:       func.func @heat_d2(
func.func @heat_d2(%u: !field) {
  func.return
}
// CHECK:       func.func @heat_step(
func.func @heat_step(%u: !field) {
  func.return
}
func.func private @left(%u: f64) -> f64 {
  func.return %u : f64
}
