// The prefix sum of CUB beside a copy of as many bytes, as benchmarks/sweeps.py times a line: the median of five times ten runs
// behind three copies, whose time passes the host's. Prints a row of JSON for each type and size.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 -o scan scan.cu && ./scan

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>

#define CHECK(call) \
  do { \
    cudaError_t error = (call); \
    if (error != cudaSuccess) { \
      fprintf(stderr, "%s, line %d\n", cudaGetErrorString(error), __LINE__); \
      exit(1); \
    } \
  } while (0)

char* large;

template <class Run>
float microseconds(Run run) {
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  run();
  CHECK(cudaDeviceSynchronize());
  float found[5];
  for (float& each : found) {
    for (int k = 0; k < 3; ++k) {
      CHECK(cudaMemcpyAsync(large, large + (1l << 29), 1l << 29, cudaMemcpyDeviceToDevice));
    }
    CHECK(cudaEventRecord(start));
    for (int k = 0; k < 10; ++k) run();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&each, start, end));
  }
  std::sort(found, found + 5);
  return found[2] * 100;
}

template <class T>
void measure(const char* name, int bits) {
  long places = 1l << bits;
  T *in, *out;
  CHECK(cudaMalloc(&in, places * sizeof(T)));
  CHECK(cudaMalloc(&out, places * sizeof(T)));
  CHECK(cudaMemset(in, 0, places * sizeof(T)));
  size_t room = 0;
  CHECK(cub::DeviceScan::InclusiveSum(nullptr, room, in, out, places));
  void* words;
  CHECK(cudaMalloc(&words, room));
  float copy = microseconds([&] { CHECK(cudaMemcpyAsync(out, in, places * sizeof(T), cudaMemcpyDeviceToDevice)); });
  float scan = microseconds([&] { CHECK(cub::DeviceScan::InclusiveSum(words, room, in, out, places)); });
  printf("{\"type\": \"%s\", \"places\": %ld, \"copy_us\": %.2f, \"cub_us\": %.2f, \"of_a_copy\": %.3f}\n", name, places, copy, scan,
         copy / scan);
  CHECK(cudaFree(words));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

int main() {
  CHECK(cudaMalloc(&large, 1l << 30));
  for (int bits : {20, 22, 24, 26}) {
    measure<float>("f32", bits);
    measure<double>("f64", bits);
  }
}
