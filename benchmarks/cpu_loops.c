// The programs of cpu.py as plain loops: sides are fixed when compiled, as in ours. Threads share the outermost axis.
// gcc -O3 -march=native -fopenmp -shared -fPIC; gcc contracts products and sums by itself.

#include <omp.h>

#define HEAT2D 2048
#define HEAT3D 256
#define REACTION 1024
#define WAVE 256

void heat2d(double *u, double *v, long steps, int threads) {
  enum { N = HEAT2D, S = N + 2 };
  omp_set_num_threads(threads);
  for (long t = 0; t < steps; t++) {
    const double *restrict a = t % 2 ? v : u;
    double *restrict b = t % 2 ? u : v;
#pragma omp parallel for schedule(static)
    for (long i = 1; i <= N; i++)
      for (long j = 1; j <= N; j++) {
        const double *c = a + i * S + j;
        b[i * S + j] = 0.2 * c[-S] + 0.2 * c[-1] + 0.2 * c[0] + 0.2 * c[1] + 0.2 * c[S];
      }
  }
}

void heat3d(double *u, double *v, long steps, int threads) {
  enum { N = HEAT3D, S = N + 2, P = S * S };
  omp_set_num_threads(threads);
  for (long t = 0; t < steps; t++) {
    const double *restrict a = t % 2 ? v : u;
    double *restrict b = t % 2 ? u : v;
#pragma omp parallel for schedule(static)
    for (long i = 1; i <= N; i++)
      for (long j = 1; j <= N; j++)
        for (long k = 1; k <= N; k++) {
          const double *c = a + i * P + j * S + k;
          b[i * P + j * S + k] = 0.125 * c[-P] + 0.125 * c[-S] + 0.125 * c[-1] + 0.25 * c[0] +
                                 0.125 * c[1] + 0.125 * c[S] + 0.125 * c[P];
        }
  }
}

void gray_scott(float *u, float *v, float *u_next, float *v_next, float du, float dv, float feed, float kill,
                long steps, int threads) {
  enum { N = REACTION, S = N + 2 };
  omp_set_num_threads(threads);
  for (long t = 0; t < steps; t++) {
    const float *restrict a = t % 2 ? u_next : u;
    const float *restrict b = t % 2 ? v_next : v;
    float *restrict c = t % 2 ? u : u_next;
    float *restrict d = t % 2 ? v : v_next;
#pragma omp parallel for schedule(static)
    for (long i = 1; i <= N; i++)
      for (long j = 1; j <= N; j++) {
        const long at = i * S + j;
        const float x = a[at], y = b[at];
        const float spread_x = a[at - S] + a[at - 1] + a[at + 1] + a[at + S] + -4.0f * x;
        const float spread_y = b[at - S] + b[at - 1] + b[at + 1] + b[at + S] + -4.0f * y;
        const float reaction = x * (y * y);
        c[at] = x + du * spread_x - reaction + feed * (1.0f - x);
        d[at] = y + dv * spread_y + reaction - (feed + kill) * y;
      }
  }
}

void star25(float *now, float *next, float *before, float *medium, long steps, int threads) {
  enum { N = WAVE, H = 4, S = N + 2 * H, P = S * S };
  const float w[] = {-8.541666666666666f, 1.6f, -0.2f, 0.025396825396825397f, -0.0017857142857142857f};
  omp_set_num_threads(threads);
  for (long t = 0; t < steps; t++) {
    const float *restrict a = now, *restrict b = before, *restrict m = medium;
    float *restrict r = next;
#pragma omp parallel for schedule(static)
    for (long i = H; i < N + H; i++)
      for (long j = H; j < N + H; j++)
        for (long k = H; k < N + H; k++) {
          const float *c = a + i * P + j * S + k;
          float sum = w[0] * c[0];
          sum += w[1] * (c[-P] + c[P] + (c[-S] + c[S]) + (c[-1] + c[1]));
          sum += w[2] * (c[-2 * P] + c[2 * P] + (c[-2 * S] + c[2 * S]) + (c[-2] + c[2]));
          sum += w[3] * (c[-3 * P] + c[3 * P] + (c[-3 * S] + c[3 * S]) + (c[-3] + c[3]));
          sum += w[4] * (c[-4 * P] + c[4 * P] + (c[-4 * S] + c[4 * S]) + (c[-4] + c[4]));
          r[i * P + j * S + k] = 2.0f * c[0] - b[i * P + j * S + k] + m[i * P + j * S + k] * sum;
        }
    float *oldest = before;
    before = now, now = next, next = oldest;
  }
}
