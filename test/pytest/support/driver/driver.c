/* Notes each call on stdout, as JSON lines. Allocations are 1024 times their number. */
#include "cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stub_function { char name[256]; };
struct stub_module { char file[256]; struct stub_function function; };
static int allocated, held;

CUresult cuInit(unsigned flags) { return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int number) { *device = number; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) { return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == CUDA_ERROR_FILE_NOT_FOUND ? "CUDA_ERROR_FILE_NOT_FOUND" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  printf("{\"upload\": %llu, \"bytes\": %zu}\n", to, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  printf("{\"download\": %llu, \"bytes\": %zu}\n", from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path) {
  FILE *file = fopen(path, "rb");
  if (getenv("STUB_OTHER_GPU") && strstr(path, ".cubin")) {
    if (file) fclose(file);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (file == 0) return CUDA_ERROR_FILE_NOT_FOUND;
  fclose(file);
  *module = malloc(sizeof **module);
  strcpy((*module)->file, strrchr(path, '/') + 1);
  held++;
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { free(module); held--; return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  *function = &module->function;
  strcpy((*function)->name, name);
  printf("{\"function\": \"%s\", \"file\": \"%s\"}\n", name, module->file);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) {
  printf("{\"shared\": %d}\n", value);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *n, CUdevice_attribute a, CUdevice d) { *n = 132; return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int b, size_t s) {
  *n = 1;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  *pointer = 1024ull * ++allocated;
  held++;
  printf("{\"alloc\": %llu, \"bytes\": %zu}\n", *pointer, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr pointer) { held--; return CUDA_SUCCESS; }
CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, size_t bytes, CUstream s) {
  printf("{\"zero\": %llu, \"bytes\": %zu}\n", pointer, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  printf("{\"copy\": [%llu, %llu], \"bytes\": %zu}\n", from, to, bytes);
  return CUDA_SUCCESS;
}
static CUresult note(CUfunction f, unsigned grid, unsigned block, unsigned shared, void **parameters,
                     const char *how) {
  printf("{\"launch\": \"%s\", \"grid\": %u, \"block\": %u, \"shared\": %u, \"how\": \"%s\", \"values\": [",
         f->name, grid, block, shared, how);
  for (int k = 0; parameters[k]; k++)
    printf("%s%llu", k ? ", " : "", *(unsigned long long *)parameters[k]);
  printf("]}\n");
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream s, void **parameters, void **extra) {
  return note(f, gx, bx, shared, parameters, "plain");
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream s,
                                   void **parameters) {
  return note(f, gx, bx, shared, parameters, "cooperative");
}
int stub_held(void) { return held; }
