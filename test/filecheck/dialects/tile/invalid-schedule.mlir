// RUN: xdsl-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// What the schedule attribute refuses: parts and words that do not exist, parts out of order, and values that no
// kernel can have.

// CHECK: a schedule has tile, cells, {{.*}}, got storge
"test.op"() {schedule = #tile.schedule<storge shared>} : () -> ()

// -----

// CHECK: parts of a schedule come once, in the order tile, cells, {{.*}}, got cells after ahead
"test.op"() {schedule = #tile.schedule<ahead 1, cells [2]>} : () -> ()

// -----

// CHECK: parts of a schedule come once, in the order {{.*}}, got sync after sync
"test.op"() {schedule = #tile.schedule<sync barrier, sync mbarrier>} : () -> ()

// -----

// CHECK: Expected `rim`, or `all`.
"test.op"() {schedule = #tile.schedule<guards rimm>} : () -> ()

// -----

// CHECK: Expected `registers`, or `shared`.
"test.op"() {schedule = #tile.schedule<storage registres>} : () -> ()

// -----

// CHECK: Expected `barrier`, `mbarrier`, `flags`, or `grid`.
"test.op"() {schedule = #tile.schedule<sync mbarier>} : () -> ()

// -----

// CHECK: Expected `none`, `rows`, `halves`, or `lanes`.
"test.op"() {schedule = #tile.schedule<form colums>} : () -> ()

// -----

// CHECK: Expected `warp`, `block`, `cluster`, or `device`.
"test.op"() {schedule = #tile.schedule<tile wrap>} : () -> ()

// -----

// CHECK: Expected `fixed`, `shifting`, or `computed`.
"test.op"() {schedule = #tile.schedule<addressing fixd>} : () -> ()

// -----

// CHECK: occupancy of a schedule is at least 1, got -3
"test.op"() {schedule = #tile.schedule<occupancy -3>} : () -> ()

// -----

// CHECK: period of a schedule is at least 1, got 0
"test.op"() {schedule = #tile.schedule<period 0>} : () -> ()

// -----

// CHECK: pack of a schedule is at least 1, got 0
"test.op"() {schedule = #tile.schedule<tile block, pack 0>} : () -> ()

// -----

// CHECK: ahead of a schedule is at least 0, got -1
"test.op"() {schedule = #tile.schedule<ahead -1>} : () -> ()

// -----

// CHECK: cells, lanes, warps and blocks of a schedule have a number for each in-plane axis, got [2, 1, 1, 2] numbers
"test.op"() {schedule = #tile.schedule<cells [4, 2]>} : () -> ()

// -----

// CHECK: cells, lanes, warps and blocks of a schedule have a number for each in-plane axis, got [0, 0, 0, 0] numbers
"test.op"() {schedule = #tile.schedule<cells [], lanes [], warps []>} : () -> ()

// -----

// CHECK: the lanes of a layout multiply to 32, got 16
"test.op"() {schedule = #tile.schedule<lanes [16]>} : () -> ()

// -----

// CHECK: a warp tile has one block, got 2
"test.op"() {schedule = #tile.schedule<blocks [2]>} : () -> ()

// -----

// CHECK: only the blocks of a tile of the device wait for each other by flags or grid, got sync grid for tile block
"test.op"() {schedule = #tile.schedule<tile block, sync grid>} : () -> ()

// -----

// CHECK: cuts of a schedule rise from 1 or more, got [2, 1]
"test.op"() {schedule = #tile.schedule<reads_memory, cuts [2, 1]>} : () -> ()

// -----

// CHECK: only kernels that read memory run a step in parts, got cuts [1] without reads_memory
"test.op"() {schedule = #tile.schedule<cuts [1]>} : () -> ()

// -----

// CHECK: occupancies of a schedule are a number from 1 for each kernel of a step with cuts, got [2] for cuts [1]
"test.op"() {schedule = #tile.schedule<reads_memory, cuts [1], occupancies [2]>} : () -> ()

// -----

// CHECK: occupancies of a schedule are a number from 1 for each kernel of a step with cuts, got [2] for cuts []
"test.op"() {schedule = #tile.schedule<reads_memory, occupancies [2]>} : () -> ()

// -----

// CHECK: occupancies of a schedule are a number from 1 for each kernel of a step with cuts, got [0, 2] for cuts [1]
"test.op"() {schedule = #tile.schedule<reads_memory, cuts [1], occupancies [0, 2]>} : () -> ()

// -----

// CHECK: only kernels that read memory run a step in regions, got regions without reads_memory
"test.op"() {schedule = #tile.schedule<regions>} : () -> ()
