// RUN: xdsl-opt %s -p 'raise-time-loop,choose-schedule{tile=block resident=false}' | filecheck %s --check-prefix=BLOCK
// RUN: xdsl-opt %s -p 'raise-time-loop,choose-schedule{tile=device storage=shared}' | filecheck %s --check-prefix=SHARED
// RUN: xdsl-opt %s -p 'raise-time-loop,choose-schedule{cells=5,1 form=none occupancy=1}' | filecheck %s --check-prefix=CELLS
// RUN: xdsl-opt %s -p 'raise-time-loop,choose-schedule{guards=all ahead=1 tile=block}' | filecheck %s --check-prefix=LATE

// Fields of a schedule constrain the choice. A field leaves the compared schedules with the value, or replaces the value of
// all; fields that are decided last are replaced in the chosen schedule.

// BLOCK:  temporal.loop {{.*}} schedule #tile.schedule<tile block, {{.*}}sync mbarrier, occupancy 1>
// SHARED: temporal.loop {{.*}} schedule #tile.schedule<tile device, {{.*}} storage shared, {{.*}} sync grid
// CELLS:  temporal.loop {{.*}} schedule #tile.schedule<{{.*}}cells [5, 1], {{.*}} occupancy 1
// LATE:   temporal.loop {{.*}} schedule #tile.schedule<tile block, {{.*}} ahead 1, {{.*}} guards all

!field = !stencil.field<[-1,97]x[-1,97]x[-1,97]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @volume(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, 0, 0] : !temp
      %x1 = stencil.access %x[0, -1, 0] : !temp
      %x2 = stencil.access %x[0, 0, -1] : !temp
      %x3 = stencil.access %x[0, 0, 0] : !temp
      %x4 = stencil.access %x[0, 0, 1] : !temp
      %x5 = stencil.access %x[0, 1, 0] : !temp
      %x6 = stencil.access %x[1, 0, 0] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s3 = arith.addf %s2, %x3 : f64
      %s4 = arith.addf %s3, %x4 : f64
      %s5 = arith.addf %s4, %x5 : f64
      %s = arith.addf %s5, %x6 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0, 0], [96, 96, 96]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}

