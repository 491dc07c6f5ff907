// The programs of benchmarks/real_steps.py as a user writes them first: one thread a cell, one or two kernels a step,
// blocks of 64 x 4 threads. Prints `program element GPts/s`, a line each: the best of three runs, random cells.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 -o naive naive.cu && ./naive [PROGRAM...]

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) \
  do { \
    cudaError_t error = (call); \
    if (error != cudaSuccess) { \
      fprintf(stderr, "%s, line %d\n", cudaGetErrorString(error), __LINE__); \
      exit(1); \
    } \
  } while (0)

// The thread's cell `c`, at least R cells inside an n x n plane or an n x n x n volume; X, Y and Z are strides.
#define PLANE(R) \
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; \
  if (x < R || y < R || x >= n - R || y >= n - R) return; \
  const size_t X = 1, Y = n, c = y * Y + x;

#define VOLUME(R) \
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z; \
  if (x < R || y < R || z < R || x >= n - R || y >= n - R || z >= n - R) return; \
  const size_t X = 1, Y = n, Z = (size_t)n * n, c = z * Z + y * Y + x;

#define K(value) ((T)(value))
#define IN const T *__restrict__
#define OUT T *__restrict__

// Second differences along a stride, of order 2, 4 and 8, and sums of them.
#define D2(q, s) (q[c - s] - 2 * q[c] + q[c + s])
#define D4(q, s) (K(-2.5) * q[c] + K(4. / 3) * (q[c - s] + q[c + s]) + K(-1. / 12) * (q[c - 2 * s] + q[c + 2 * s]))
#define D8(q, s) \
  (K(-205. / 72) * q[c] + K(1.6) * (q[c - s] + q[c + s]) + K(-0.2) * (q[c - 2 * s] + q[c + 2 * s]) + \
   K(8. / 315) * (q[c - 3 * s] + q[c + 3 * s]) + K(-1. / 560) * (q[c - 4 * s] + q[c + 4 * s]))
#define LAPLACE_2(D, q) (D(q, Y) + D(q, X))
#define LAPLACE_3(D, q) (D(q, Z) + D(q, Y) + D(q, X))

// Staggered first differences of order 4: half a cell ahead, and half a cell behind.
#define AHEAD(q, s) (K(1.125) * (q[c + s] - q[c]) - K(0.0416667) * (q[c + 2 * s] - q[c - s]))
#define BEHIND(q, s) (K(1.125) * (q[c] - q[c - s]) - K(0.0416667) * (q[c + s] - q[c - 2 * s]))

template <class T> __global__ void heat_2d(int n, IN u, OUT v) {
  PLANE(1) v[c] = u[c] + K(0.2) * LAPLACE_2(D2, u);
}
template <class T> __global__ void heat_3d(int n, IN u, OUT v) {
  VOLUME(1) v[c] = u[c] + K(0.1) * LAPLACE_3(D2, u);
}
template <class T> __global__ void flux_2d(int n, IN u, OUT v, IN k) {
  PLANE(1)
  v[c] = u[c] + K(0.5) * ((k[c] + k[c + Y]) * (u[c + Y] - u[c]) - (k[c] + k[c - Y]) * (u[c] - u[c - Y]) +
                          (k[c] + k[c + X]) * (u[c + X] - u[c]) - (k[c] + k[c - X]) * (u[c] - u[c - X]));
}
template <class T> __global__ void vardiff_3d_so4(int n, IN u, OUT v, IN k) {
  VOLUME(2) v[c] = u[c] + k[c] * LAPLACE_3(D4, u);
}
template <class T> __global__ void wave_3d_so2(int n, IN u, T *v, IN m) {
  VOLUME(1) v[c] = 2 * u[c] - v[c] + m[c] * LAPLACE_3(D2, u);
}
template <class T> __global__ void wave_3d_so4(int n, IN u, T *v, IN m) {
  VOLUME(2) v[c] = 2 * u[c] - v[c] + m[c] * LAPLACE_3(D4, u);
}
template <class T> __global__ void wave_3d_so8(int n, IN u, T *v, IN m) {
  VOLUME(4) v[c] = 2 * u[c] - v[c] + m[c] * LAPLACE_3(D8, u);
}
template <class T> __global__ void acoustic_2d_so4(int n, IN u, T *v, IN m, IN d) {
  PLANE(2) v[c] = 2 * u[c] - v[c] + m[c] * LAPLACE_2(D4, u) - d[c] * (u[c] - v[c]);
}
template <class T> __global__ void acoustic_3d_so4(int n, IN u, T *v, IN m, IN d) {
  VOLUME(2) v[c] = 2 * u[c] - v[c] + m[c] * LAPLACE_3(D4, u) - d[c] * (u[c] - v[c]);
}
template <class T> __global__ void acoustic_3d_so8(int n, IN u, T *v, IN m, IN d) {
  VOLUME(4) v[c] = 2 * u[c] - v[c] + m[c] * LAPLACE_3(D8, u) - d[c] * (u[c] - v[c]);
}
template <class T> __global__ void grayscott3(int n, IN u, IN v, OUT a, OUT b) {
  VOLUME(1)
  const T r = u[c] * v[c] * v[c];
  a[c] = u[c] + K(0.16) * LAPLACE_3(D2, u) - r + K(0.035) * (1 - u[c]);
  b[c] = v[c] + K(0.08) * LAPLACE_3(D2, v) + r - K(0.1) * v[c];
}
#define CARRIED(q) \
  q[c] - K(0.05) * (u[c] * (q[c + Z] - q[c - Z]) + v[c] * (q[c + Y] - q[c - Y]) + w[c] * (q[c + X] - q[c - X])) + \
      K(0.05) * LAPLACE_3(D2, q)
template <class T> __global__ void burgers3(int n, IN u, IN v, IN w, OUT a, OUT b, OUT d) {
  VOLUME(1) a[c] = CARRIED(u), b[c] = CARRIED(v), d[c] = CARRIED(w);
}
template <class T> __global__ void swe(int n, IN h, IN p, IN q, OUT H, OUT P, OUT Q) {
  PLANE(1)
  const size_t a = c + Y, b = c - Y, e = c + X, f = c - X;
#define PRESSURE(i) (K(4.9) * h[i] * h[i])
#define MEAN(r) (K(0.25) * (r[b] + r[a] + r[f] + r[e]))
  H[c] = MEAN(h) - K(0.05) * (p[a] - p[b]) - K(0.05) * (q[e] - q[f]);
  P[c] = MEAN(p) - K(0.05) * (p[a] * (p[a] / h[a]) + PRESSURE(a) - (p[b] * (p[b] / h[b]) + PRESSURE(b))) -
         K(0.05) * (q[e] * (p[e] / h[e]) - q[f] * (p[f] / h[f]));
  Q[c] = MEAN(q) - K(0.05) * (p[a] * (q[a] / h[a]) - p[b] * (q[b] / h[b])) -
         K(0.05) * (q[e] * (q[e] / h[e]) + PRESSURE(e) - (q[f] * (q[f] / h[f]) + PRESSURE(f)));
}
template <class T> __global__ void yee_h(int n, IN ex, IN ey, IN ez, T *hx, T *hy, T *hz) {
  VOLUME(1)
  hx[c] += -K(0.3) * (ez[c + Y] - ez[c]) + K(0.3) * (ey[c + X] - ey[c]);
  hy[c] += -K(0.3) * (ex[c + X] - ex[c]) + K(0.3) * (ez[c + Z] - ez[c]);
  hz[c] += -K(0.3) * (ey[c + Z] - ey[c]) + K(0.3) * (ex[c + Y] - ex[c]);
}
template <class T> __global__ void yee_e(int n, T *ex, T *ey, T *ez, IN hx, IN hy, IN hz) {
  VOLUME(1)
  ex[c] += K(0.3) * (hz[c] - hz[c - Y]) - K(0.3) * (hy[c] - hy[c - X]);
  ey[c] += K(0.3) * (hx[c] - hx[c - X]) - K(0.3) * (hz[c] - hz[c - Z]);
  ez[c] += K(0.3) * (hy[c] - hy[c - Z]) - K(0.3) * (hx[c] - hx[c - Y]);
}
template <class T> __global__ void velocities(int n, T *vx, T *vy, T *vz, IN xx, IN yy, IN zz, IN xy, IN xz, IN yz) {
  VOLUME(2)
  vx[c] += K(0.1) * (AHEAD(xx, Z) + BEHIND(xy, Y) + BEHIND(xz, X));
  vy[c] += K(0.1) * (BEHIND(xy, Z) + AHEAD(yy, Y) + BEHIND(yz, X));
  vz[c] += K(0.1) * (BEHIND(xz, Z) + BEHIND(yz, Y) + AHEAD(zz, X));
}
template <class T> __global__ void stresses(int n, IN vx, IN vy, IN vz, T *xx, T *yy, T *zz, T *xy, T *xz, T *yz) {
  VOLUME(2)
  const T a = BEHIND(vx, Z), b = BEHIND(vy, Y), d = BEHIND(vz, X), l = K(0.05) * (a + b + d);
  xx[c] += l + K(0.1) * a, yy[c] += l + K(0.1) * b, zz[c] += l + K(0.1) * d;
  xy[c] += K(0.05) * (AHEAD(vx, Y) + AHEAD(vy, Z));
  xz[c] += K(0.05) * (AHEAD(vx, X) + AHEAD(vz, Z));
  yz[c] += K(0.05) * (AHEAD(vy, X) + AHEAD(vz, Y));
}
template <class T> __global__ void elastic2_v(int n, T *vx, T *vy, IN xx, IN yy, IN xy, IN b) {
  PLANE(1)
  vx[c] += b[c] * K(0.2) * (xx[c + Y] - xx[c] + xy[c] - xy[c - X]);
  vy[c] += b[c] * K(0.2) * (xy[c] - xy[c - Y] + yy[c + X] - yy[c]);
}
template <class T> __global__ void elastic2_s(int n, IN vx, IN vy, T *xx, T *yy, T *xy, IN l, IN m) {
  PLANE(1)
  const T ex = vx[c] - vx[c - Y], ey = vy[c] - vy[c - X], k = l[c] + 2 * m[c];
  xx[c] += K(0.2) * (k * ex + l[c] * ey);
  yy[c] += K(0.2) * (k * ey + l[c] * ex);
  xy[c] += K(0.2) * m[c] * (vx[c + X] - vx[c] + vy[c + Y] - vy[c]);
}

template <class T> __global__ void elastic_2d_so4_v(int n, T *vx, T *vy, IN xx, IN yy, IN xy, IN b) {
  PLANE(2)
  vx[c] += K(0.2) * b[c] * (AHEAD(xx, Y) + BEHIND(xy, X));
  vy[c] += K(0.2) * b[c] * (BEHIND(xy, Y) + AHEAD(yy, X));
}
template <class T> __global__ void elastic_2d_so4_s(int n, IN vx, IN vy, T *xx, T *yy, T *xy, IN k, IN m) {
  PLANE(2)
  const T ex = BEHIND(vx, Y), ey = BEHIND(vy, X), l = k[c] * (ex + ey);
  xx[c] += K(0.2) * (l + 2 * m[c] * ex);
  yy[c] += K(0.2) * (l + 2 * m[c] * ey);
  xy[c] += K(0.2) * m[c] * (AHEAD(vx, X) + AHEAD(vy, Y));
}

// A lattice of 9 velocities: the arrivals, and a collision of Bhatnagar, Gross and Krook.
template <class T> struct Lattice {
  const T *from[9];
  T *to[9];
};
template <class T> __global__ void lbm_d2q9(int n, Lattice<T> f) {
  PLANE(1)
  constexpr int a[] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, b[] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  T g[9], rho = 0, u = 0, v = 0;
  for (int k = 0; k < 9; k++) {
    g[k] = f.from[k][c - a[k] * (long)Y - b[k] * (long)X];
    rho += g[k], u += a[k] * g[k], v += b[k] * g[k];
  }
  u /= rho, v /= rho;
  const T still = 1 - K(1.5) * (u * u + v * v);
  for (int k = 0; k < 9; k++) {
    const T along = 3 * (a[k] * u + b[k] * v), w = K(k == 0 ? 4. / 9 : k < 5 ? 1. / 9 : 1. / 36);
    f.to[k][c] = g[k] + K(1.7) * (w * rho * (still + along + K(0.5) * along * along) - g[k]);
  }
}

// Tilted media: second differences of 73 points along the axis of symmetry, and across.
#define CORNERS(q, s, t, d) \
  (q[c - d * s - d * t] + q[c + d * s + d * t] - (q[c - d * s + d * t] + q[c + d * s - d * t]))
#define MIXED(q, s, t) \
  (K(0.4) * CORNERS(q, s, t, 1) + K(-0.05) * CORNERS(q, s, t, 2) + K(2. / 315) * CORNERS(q, s, t, 3) + \
   K(-1. / 2240) * CORNERS(q, s, t, 4))
#define ALONG(q) \
  (a * K(0.64) * D8(q, X) + a * K(0.36) * D8(q, Y) + (1 - a) * D8(q, Z) + a * K(0.96) * MIXED(q, Y, X) + \
   b * K(1.6) * MIXED(q, Z, X) + b * K(1.2) * MIXED(q, Z, Y))
#define TILTED \
  const T a = s[c] * s[c], b = s[c] * sqrt(1 - a), deep = ALONG(q), across = LAPLACE_3(D8, q) - deep; \
  const T one = (1 + 2 * d[c]) * across + ALONG(p), other = 2 * (e[c] - d[c]) * across + deep;
template <class T> __global__ void tti8(int n, IN p, IN q, T *pp, T *qq, IN m, IN s, IN e, IN d) {
  VOLUME(4)
  TILTED
  pp[c] = 2 * p[c] - pp[c] + m[c] * one;
  qq[c] = 2 * q[c] - qq[c] + m[c] * other;
}
// With memories f and g of a damping in three fields.
template <class T> struct Damped {
  const T *p, *q, *m, *s, *e, *d, *x, *y, *z;
  T *pp, *qq, *f, *g;
};
template <class T> __global__ void tti13(int n, Damped<T> r) {
  VOLUME(4)
  const T *p = r.p, *q = r.q, *s = r.s, *e = r.e, *d = r.d, *kx = r.x, *ky = r.y, *kz = r.z;
  TILTED
  const T eta = kx[c] + ky[c] + kz[c], kept = 2 - eta * eta + 2 * eta;
#define ENTERS(u) \
  K(0.25) * ((kx[c + Z] - kx[c - Z]) * (u[c + Z] - u[c - Z]) + (ky[c + Y] - ky[c - Y]) * (u[c + Y] - u[c - Y]) + \
             (kz[c + X] - kz[c - X]) * (u[c + X] - u[c - X]))
  r.pp[c] = (kept * p[c] - r.pp[c] + r.m[c] * (one + r.f[c])) / (1 + 2 * eta);
  r.f[c] = (r.f[c] - (ENTERS(p))) / (1 + eta);
  r.qq[c] = (kept * q[c] - r.qq[c] + r.m[c] * (other + r.g[c])) / (1 + 2 * eta);
  r.g[c] = (r.g[c] - (ENTERS(q))) / (1 + eta);
}

template <class T> __global__ void fill(T *p, size_t n, T from, unsigned seed) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned h = (unsigned)i * 2654435761u + seed;
  h = (h ^ h >> 15) * 2246822519u, h ^= h >> 13;
  p[i] = from + K(0.1) * K(h & 0xffff) / K(65536);
}

template <class T> struct Fields {
  size_t cells;
  std::vector<T *> all;
  Fields(size_t cells, int count, T first) : cells(cells) {
    for (int k = 0; k < count; k++) {
      T *p;
      CHECK(cudaMalloc(&p, cells * sizeof(T)));
      fill<T><<<(cells + 255) / 256, 256>>>(p, cells, k % 3 ? K(0.2) : first, k + 1);
      all.push_back(p);
    }
  }
  ~Fields() {
    CHECK(cudaDeviceSynchronize());
    for (T *p : all) cudaFree(p);
  }
  T *&operator[](int k) { return all[k]; }
};

template <class Step> double seconds_of(Step step, int steps) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  double best = 1e30;
  for (int run = 0; run < 4; run++) {
    cudaEventRecord(begin);
    for (int k = 0; k < steps; k++) step();
    cudaEventRecord(end), cudaEventSynchronize(end);
    float ms;
    cudaEventElapsedTime(&ms, begin, end);
    if (run && ms * 1e-3 / steps < best) best = ms * 1e-3 / steps;
  }
  CHECK(cudaGetLastError());
  return best;
}

template <class T> void measure(const char *element, const std::set<std::string> &asked) {
  const int plane = 8192, volume = 512;
  const size_t P = (size_t)plane * plane, V = (size_t)volume * volume * volume;
  const dim3 block(64, 4), flat(plane / 64, plane / 4), deep(volume / 64, volume / 4, volume);
  auto report = [&](const char *name, size_t cells, double seconds) {
    printf("%s %s %.2f\n", name, element, cells / seconds / 1e9);
    fflush(stdout);
  };
  auto wanted = [&](const char *name) { return asked.empty() || asked.count(name) > 0; };
#define RUN(name, cells, count, first, steps, ...) \
  if (wanted(name)) { \
    Fields<T> f(cells, count, K(first)); \
    report(name, cells, seconds_of([&] { __VA_ARGS__; }, steps)); \
  }
#define SWAP(a, b) std::swap(f[a], f[b])
  RUN("heat_2d", P, 2, 0.2, 40, heat_2d<T><<<flat, block>>>(plane, f[0], f[1]); SWAP(0, 1))
  RUN("flux_2d", P, 3, 0.1, 40, flux_2d<T><<<flat, block>>>(plane, f[0], f[1], f[2]); SWAP(0, 1))
  RUN("acoustic_2d_so4", P, 4, 0.1, 40, acoustic_2d_so4<T><<<flat, block>>>(plane, f[0], f[1], f[2], f[3]); SWAP(0, 1))
  RUN("swe", P, 6, 1, 20, swe<T><<<flat, block>>>(plane, f[0], f[1], f[2], f[3], f[4], f[5]);
      SWAP(0, 3), SWAP(1, 4), SWAP(2, 5))
  RUN("elastic2", P, 8, 0.2, 20, elastic2_v<T><<<flat, block>>>(plane, f[0], f[1], f[2], f[3], f[4], f[5]);
      elastic2_s<T><<<flat, block>>>(plane, f[0], f[1], f[2], f[3], f[4], f[6], f[7]))
  RUN("heat_3d", V, 2, 0.2, 40, heat_3d<T><<<deep, block>>>(volume, f[0], f[1]); SWAP(0, 1))
  RUN("vardiff_3d_so4", V, 3, 0.1, 20, vardiff_3d_so4<T><<<deep, block>>>(volume, f[0], f[1], f[2]); SWAP(0, 1))
  RUN("wave_3d_so2", V, 3, 0.1, 20, wave_3d_so2<T><<<deep, block>>>(volume, f[0], f[1], f[2]); SWAP(0, 1))
  RUN("wave_3d_so4", V, 3, 0.1, 20, wave_3d_so4<T><<<deep, block>>>(volume, f[0], f[1], f[2]); SWAP(0, 1))
  RUN("wave_3d_so8", V, 3, 0.1, 20, wave_3d_so8<T><<<deep, block>>>(volume, f[0], f[1], f[2]); SWAP(0, 1))
  RUN("acoustic_3d_so4", V, 4, 0.1, 20, acoustic_3d_so4<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3]); SWAP(0, 1))
  RUN("acoustic_3d_so8", V, 4, 0.1, 20, acoustic_3d_so8<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3]); SWAP(0, 1))
  RUN("grayscott3", V, 4, 0.2, 20, grayscott3<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3]);
      SWAP(0, 2), SWAP(1, 3))
  RUN("burgers3", V, 6, 0.2, 20, burgers3<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3], f[4], f[5]);
      SWAP(0, 3), SWAP(1, 4), SWAP(2, 5))
  RUN("yee3", V, 6, 0.2, 20, yee_h<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3], f[4], f[5]);
      yee_e<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3], f[4], f[5]))
  RUN("elastic_3d_so4", V, 9, 0.2, 10,
      velocities<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]);
      stresses<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]))
  RUN("elastic_2d_so4", P, 8, 0.2, 20,
      elastic_2d_so4_v<T><<<flat, block>>>(plane, f[0], f[1], f[2], f[3], f[4], f[5]);
      elastic_2d_so4_s<T><<<flat, block>>>(plane, f[0], f[1], f[2], f[3], f[4], f[6], f[7]))
  RUN("lbm_d2q9", P, 18, 1, 10, Lattice<T> r;
      for (int k = 0; k < 9; k++) r.from[k] = f[k], r.to[k] = f[k + 9];
      lbm_d2q9<T><<<flat, block>>>(plane, r);
      for (int k = 0; k < 9; k++) SWAP(k, k + 9))
  RUN("tti8", V, 8, 0.2, 5, tti8<T><<<deep, block>>>(volume, f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]);
      SWAP(0, 2), SWAP(1, 3))
  RUN("tti13", V, 13, 0.1, 5,
      Damped<T> r{f[0], f[1], f[4], f[5], f[6], f[7], f[8], f[9], f[10], f[2], f[3], f[11], f[12]};
      tti13<T><<<deep, block>>>(volume, r); SWAP(0, 2), SWAP(1, 3))
}

int main(int count, char **words) {
  const std::set<std::string> asked(words + 1, words + count);
  measure<float>("f32", asked);
  measure<double>("f64", asked);
}
