/* Heat conduction in a plate, from C: arrays of the host go in, and come back after 1000 steps.

     timetile compile examples/heat2d.mlir --emit bundle --out heat2d
     cmake -S examples/hosts -B build -DBUNDLE=$PWD/heat2d && cmake --build build
     build/heat2d_c                                                                            */
#include "heat2d.h"

#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 258 };

static int fails(heat2d_program *program) {
  fprintf(stderr, "%s\n", heat2d_message(program));
  heat2d_unload(program);
  return EXIT_FAILURE;
}

int main(int count, char **words) {
  const char *folder = count > 1 ? words[1] : HEAT2D_FOLDER;
  static double u[CELLS][CELLS], v[CELLS][CELLS];
  heat2d_arrays arrays = {&u[0][0], &v[0][0]};
  heat2d_program *program;
  int code = heat2d_open(0);
  if (code) {
    fprintf(stderr, "no GPU: %s\n", heat2d_error(code));
    return EXIT_FAILURE;
  }
  /* A hot edge, in both buffers: each step reads the edge of another buffer. */
  for (int k = 0; k < CELLS; k++) u[0][k] = v[0][k] = 1.0;
  if (heat2d_load(&program, folder)) return fails(program);
  if (heat2d_advance_arrays(program, &arrays, 1000)) return fails(program);
  heat2d_unload(program);
  printf("%.17g\n", u[10][CELLS / 2]);
  return EXIT_SUCCESS;
}
