// Heat conduction in a plate, from C++: fields stay on the GPU between two runs on a stream.
// heat2d.c tells how to build.
#include "heat2d.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t cells = 258;

void check(int code, const char *what) {
  if (code) throw std::runtime_error(std::string(what) + ": " + heat2d_error(code));
}

struct Unload {
  void operator()(heat2d_program *program) const { heat2d_unload(program); }
};

CUdeviceptr uploaded(const std::vector<double> &values) {
  CUdeviceptr made = 0;
  check(cuMemAlloc(&made, values.size() * sizeof(double)), "cuMemAlloc");
  check(cuMemcpyHtoD(made, values.data(), values.size() * sizeof(double)), "cuMemcpyHtoD");
  return made;
}

void conduct(const char *folder) {
  check(heat2d_open(0), "no GPU");
  std::vector<double> plate(cells * cells);
  for (std::size_t k = 0; k < cells; k++) plate[k] = 1.0;  // a hot edge
  heat2d_program *loaded = nullptr;
  const int code = heat2d_load(&loaded, folder);
  const std::unique_ptr<heat2d_program, Unload> program(loaded);
  if (code) throw std::runtime_error(heat2d_message(program.get()));

  heat2d_arguments arguments = {uploaded(plate), uploaded(plate)};
  for (const int steps : {333, 667})  // after an odd number of steps, u and v have changed places
    if (heat2d_advance(program.get(), &arguments, steps, nullptr))
      throw std::runtime_error(heat2d_message(program.get()));
  check(cuStreamSynchronize(nullptr), "cuStreamSynchronize");

  check(cuMemcpyDtoH(plate.data(), arguments.u, plate.size() * sizeof(double)), "cuMemcpyDtoH");
  cuMemFree(arguments.u);
  cuMemFree(arguments.v);
  std::printf("%.17g\n", plate[10 * cells + cells / 2]);
}

}  // namespace

int main(int count, char **words) {
  try {
    conduct(count > 1 ? words[1] : HEAT2D_FOLDER);
    return EXIT_SUCCESS;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
