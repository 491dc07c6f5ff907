// RUN: xdsl-opt %s -p drop-swaps | filecheck %s

// A swap of one rank exchanges nothing; a swap of four ranks stays.

!field = !stencil.field<[-1,17]x[-1,17]xf64>

// CHECK-LABEL: func.func @swaps
// CHECK-NOT:     #dmp.topo<1x1>
// CHECK:         "dmp.swap"(%A) {{.*}}#dmp.topo<2x2>
// CHECK-NOT:     dmp.swap
func.func @swaps(%A: !field) {
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<1x1>, false>, swaps = []} : (!field) -> ()
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x2>, false>, swaps = []} : (!field) -> ()
  func.return
}
