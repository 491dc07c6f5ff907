// RUN: xdsl-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Refusals by the verifiers of the tile dialect's attributes. Each sentence stands above its attribute,
// with the found and the expected value.

// CHECK: every count of a layout is positive, got 0 cells x 32 lanes
"test.op"() {layout = #tile.layout<warp, [0 cells x 32 lanes]>} : () -> ()

// -----

// CHECK: the lanes of a layout multiply to 32, got 64
"test.op"() {layout = #tile.layout<warp, [1 cells x 2 lanes, 1 cells x 32 lanes]>} : () -> ()

// -----

// CHECK: Expected `warp`, `block`, `cluster`, or `device`.
"test.op"() {layout = #tile.layout<grid, [1 cells x 32 lanes]>} : () -> ()

// -----

// CHECK: a warp tile has one warp, got 4
"test.op"() {layout = #tile.layout<warp, [1 cells x 32 lanes x 4 warps]>} : () -> ()

// -----

// CHECK: a block tile has one block, got 2
"test.op"() {layout = #tile.layout<block, [1 cells x 32 lanes x 2 blocks]>} : () -> ()

// -----

// CHECK: only warp tiles share a block (pack)
"test.op"() {layout = #tile.layout<block, [1 cells x 32 lanes], pack 2>} : () -> ()

// -----

// CHECK: a block has at most 1024 threads, got 1056
"test.op"() {layout = #tile.layout<warp, [1 cells x 32 lanes], pack 33>} : () -> ()

// -----

// CHECK: a block holds at least one tile, got pack 0
"test.op"() {layout = #tile.layout<warp, [1 cells x 32 lanes], pack 0>} : () -> ()

// -----

// CHECK: depth is at least 0 and period at least 1
"test.op"() {home = #tile.registers<depth -1, period 1>} : () -> ()

// -----

// CHECK: depth is at least 0 and period at least 1
"test.op"() {home = #tile.registers<depth 0, period 0>} : () -> ()

// -----

// CHECK: a ring has at least one slot, got 0
"test.op"() {home = #tile.shared<slots 0, fixed, reader tile>} : () -> ()

// -----

// CHECK: Expected `fixed`, `shifting`, or `computed`.
"test.op"() {home = #tile.shared<slots 2, hashed, reader tile>} : () -> ()

// -----

// CHECK: computed addressing needs a power of two of slots, got 6
"test.op"() {home = #tile.shared<slots 6, computed, ring 0 base 0, reader tile>} : () -> ()

// -----

// CHECK: base 2 of a ring of 2 slots
"test.op"() {home = #tile.exchange_buffer<slots 2, fixed, ring 0 base 2, every 1, space shared, sync barrier>} : () -> ()

// -----

// CHECK: base 4 of a ring of 4 slots
"test.op"() {home = #tile.shared<slots 4, computed, ring 0 base 4, reader tile>} : () -> ()

// -----

// CHECK: Expected `lane`, or `tile`.
"test.op"() {home = #tile.shared<slots 4, computed, ring 0 base 0, reader block>} : () -> ()

// -----

// CHECK: threads synchronise every 1 or more steps, got 0
"test.op"() {home = #tile.exchange_buffer<slots 2, fixed, every 0, space shared, sync barrier>} : () -> ()

// -----

// CHECK: Expected `shared`, or `global`.
"test.op"() {home = #tile.exchange_buffer<slots 2, fixed, every 1, space local, sync barrier>} : () -> ()

// -----

// CHECK: a buffer in global memory is synchronised by flags or grid, in shared memory by barrier or mbarrier, got flags for shared memory
"test.op"() {home = #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync flags>} : () -> ()

// -----

// CHECK: a buffer in global memory is synchronised by flags or grid, in shared memory by barrier or mbarrier, got barrier for global memory
"test.op"() {home = #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync barrier>} : () -> ()

// -----

// CHECK: Expected `barrier`, `mbarrier`, `flags`, or `grid`.
"test.op"() {home = #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync hope>} : () -> ()

// -----

// CHECK: Expected `source`, `target`, `halo`, `capture`, `scalar`, or `series`.
"test.op"() {role = #tile.role<sink 0>} : () -> ()

// -----

// CHECK: a chunk has at least one plane, got 0
"test.op"() {variant = #tile.variant<axes [], planes 0>} : () -> ()

// -----

// CHECK: no fewer than 0 planes are joined, got -2
"test.op"() {variant = #tile.variant<axes [], planes 2, joined -2>} : () -> ()

// -----

// CHECK: a variant has no fewer than 0 columns, got -1
"test.op"() {variant = #tile.variant<axes [], columns -1, planes 2>} : () -> ()

// -----

// CHECK: steps of a launch is at least 1, got 0
"test.op"() {launch = #tile.launch<steps 0, roles [], grid 1, block 32, shared_bytes 0, occupancy 1>} : () -> ()

// -----

// CHECK: grid of a launch is at least 1, got 0
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 0, block 32, shared_bytes 0, occupancy 1>} : () -> ()

// -----

// CHECK: occupancy of a launch is at least 1, got 0
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 1, block 32, shared_bytes 0, occupancy 0>} : () -> ()

// -----

// CHECK: cluster of a launch is at least 1, got 0
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 1, block 32, shared_bytes 0, occupancy 1, cluster 0>} : () -> ()

// -----

// CHECK: blocks_per_tile of a launch is at least 1, got 0
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 1, block 32, shared_bytes 0, occupancy 1, blocks_per_tile 0, message_words 0>} : () -> ()

// -----

// CHECK: a block has whole warps and at most 1024 threads, got 48
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 1, block 48, shared_bytes 0, occupancy 1>} : () -> ()

// -----

// CHECK: a block has whole warps and at most 1024 threads, got 0
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 1, block 0, shared_bytes 0, occupancy 1>} : () -> ()

// -----

// CHECK: a block has whole warps and at most 1024 threads, got 1056
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 1, block 1056, shared_bytes 0, occupancy 1>} : () -> ()

// -----

// CHECK: a block has no fewer than 0 bytes of shared memory, got -8
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 1, block 32, shared_bytes -8, occupancy 1>} : () -> ()

// -----

// CHECK: blocks of a tile reach each other through the cluster or through global memory, got a cluster of 2 and 2 blocks a tile
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 2, block 32, shared_bytes 0, occupancy 1, cluster 2, blocks_per_tile 2, message_words 8>} : () -> ()

// -----

// CHECK: a grid of 3 blocks has no whole groups of 2
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 3, block 32, shared_bytes 0, occupancy 1, cluster 2>} : () -> ()

// -----

// CHECK: a grid of 4 blocks has no whole groups of 3
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 4, block 32, shared_bytes 0, occupancy 1, blocks_per_tile 3, message_words 8>} : () -> ()

// -----

// CHECK: a tile of several blocks has message words, 0 or more, and a tile of one block has none, got 8 for 1 blocks
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 4, block 32, shared_bytes 0, occupancy 1, blocks_per_tile 1, message_words 8>} : () -> ()

// -----

// CHECK: a tile of several blocks has message words, 0 or more, and a tile of one block has none, got -8 for 2 blocks
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 4, block 32, shared_bytes 0, occupancy 1, blocks_per_tile 2, message_words -8>} : () -> ()

// -----

// CHECK: a role is expected, got #tile.memory
"test.op"() {launch = #tile.launch<steps 1, roles [#tile.memory], grid 4, block 32, shared_bytes 0, occupancy 1>} : () -> ()

// -----

// A word of a launch comes once, and in the order of printing.
// CHECK: Expected one of 'blocks_per_tile'
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 2, block 32, shared_bytes 0, occupancy 1, cluster 2, cluster 2>} : () -> ()

// -----

// CHECK: '>' expected
"test.op"() {launch = #tile.launch<steps 1, roles [], grid 2, block 32, shared_bytes 0, occupancy 1, blocks_per_tile 2, message_words 8, cluster 1>} : () -> ()
