// RUN: xdsl-opt %s -p join-parts --split-input-file --verify-diagnostics | filecheck %s

// A part that does not tell the domain is refused.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK: stencil.index in @coordinates: the operation counts from the first cell of a rank's part (the function swaps halos); give the program before distribute-stencil
func.func @coordinates(%A: !field) {
  %u = stencil.load %A : !field -> !temp
  %s = "dmp.swap"(%u) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x1>, false>, swaps = []} : (!temp) -> !temp
  %v = stencil.apply(%x = %s : !temp) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %0 = stencil.access %x[0] : !temp
    stencil.return %0 : f64
  }
  func.return
}

// -----

!field = !stencil.field<[0,8]xf64>

// CHECK: dmp.swap in @topologies: the ranks are 4 x 1, and of another swap 2 x 1; give the program before distribute-stencil
func.func @topologies(%A: !field) {
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x1>, false>, swaps = []} : (!field) -> ()
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<4x1>, false>, swaps = []} : (!field) -> ()
  func.return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK: dmp.swap in @axes: 2 x 2 ranks have more axes than the cells [0, 8); give the program before distribute-stencil
func.func @axes(%A: !field) {
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x2>, false>, swaps = []} : (!field) -> ()
  %u = stencil.load %A : !field -> !temp
  stencil.store %u to %A(<[0], [8]>) : !temp to !field
  func.return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK: stencil.external_load in @memory: the memory holds the part of one of 2 x 1 ranks; make fields the arguments, or give the program before distribute-stencil
func.func @memory(%m: memref<8xf64>) {
  %A = stencil.external_load %m : memref<8xf64> -> !field
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x1>, false>, swaps = []} : (!field) -> ()
  %u = stencil.load %A : !field -> !temp
  stencil.store %u to %A(<[0], [8]>) : !temp to !field
  func.return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK: stencil.store in @boxes: a rank stores the cells [0, 7) here, and [0, 8) elsewhere, and the domain of all ranks is unknown; give the program before distribute-stencil
func.func @boxes(%A: !field, %B: !field) {
  "dmp.swap"(%A) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x1>, false>, swaps = []} : (!field) -> ()
  %u = stencil.load %A : !field -> !temp
  stencil.store %u to %A(<[0], [8]>) : !temp to !field
  stencil.store %u to %B(<[0], [7]>) : !temp to !field
  func.return
}
