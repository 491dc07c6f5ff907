// RUN: xdsl-opt %s -p join-parts | filecheck %s

// The fields of a part and its stores become those of the domain; swaps are erased.

!part = !stencil.field<[-1,33]x[-2,9]xf64>
!whole = !stencil.field<[-1,97]x[-2,9]xf64>
!temp = !stencil.temp<?x?xf64>
!near = !stencil.temp<[-1,33]x[0,8]xf64>
!own = !stencil.temp<[0,32]x[0,8]xf64>

// Fields of a part grow, a field with room for the domain stays; bounds of values are left out.

// CHECK-LABEL: func.func @values(%A: !stencil.field<[-1,97]x[-2,9]xf64>, %B: !stencil.field<[-1,97]x[-2,9]xf64>)
// CHECK-NEXT:    %u = stencil.load %A : !stencil.field<[-1,97]x[-2,9]xf64> -> !stencil.temp<?x?xf64>
// CHECK-NEXT:    %v = stencil.apply(%x = %u : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
// CHECK:         stencil.store %v to %B(<[0, 0], [96, 8]>)
func.func @values(%A: !part, %B: !whole) {
  %u = stencil.load %A : !part -> !near
  %s = "dmp.swap"(%u) {strategy = #dmp.grid_slice_2d<#dmp.topo<3x1>, false>, swaps = [#dmp.exchange<at [32, 0] size [1, 8] source offset [-1, 0] to [1, 0]>]} : (!near) -> !near
  %v = stencil.apply(%x = %s : !near) -> (!own) {
    %0 = stencil.access %x[-1, 0] : !near
    stencil.return %0 : f64
  }
  stencil.store %v to %B(<[0, 0], [32, 8]>) : !own to !whole
  func.return
}

// CHECK-LABEL: func.func @fields
// CHECK-NOT:     dmp.swap
// CHECK:         stencil.store %v to %B(<[0, 0], [64, 16]>)
func.func @fields(%A: !stencil.field<[0,32]x[0,8]xf64>, %B: !stencil.field<[0,32]x[0,8]xf64>) {
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x2>, false>, swaps = []} : (!stencil.field<[0,32]x[0,8]xf64>) -> ()
  %u = stencil.load %A : !stencil.field<[0,32]x[0,8]xf64> -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0, 0] : !temp
    stencil.return %0 : f64
  }
  stencil.store %v to %B(<[0, 0], [32, 8]>) : !temp to !stencil.field<[0,32]x[0,8]xf64>
  func.return
}

// A function without swaps stays.

// CHECK-LABEL: func.func @alone(%A: !stencil.field<[-1,33]x[-2,9]xf64>)
func.func @alone(%A: !part) {
  func.return
}
