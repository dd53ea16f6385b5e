#pragma once

// Complex numbers, matrices of 3 x 3 and spinors, for hosts and GPUs.
#include <cmath>
#include <cstdint>
#include <waywiser/kernels/block/half.hpp>

#include "apps/parallel.hpp"
#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace apps {

// How a number lies in memory, and what is computed with.
template <typename T>
struct Stored {
  using Real = T;
  APPS_CALLABLE static Real load(T value) { return value; }
  APPS_CALLABLE static T store(Real value) { return value; }
};
template <>
struct Stored<waywiser::Float16> {
  using Real = float;
#if defined(__CUDA_ARCH__)
  __device__ static Real load(waywiser::Float16 value) { return __half2float(__ushort_as_half(value.bits)); }
  __device__ static waywiser::Float16 store(Real value) { return {__half_as_ushort(__float2half_rn(value))}; }
#elif defined(__CUDACC__)
  __host__ __device__ static Real load(waywiser::Float16 value) { return __half2float(__ushort_as_half(value.bits)); }
  __host__ __device__ static waywiser::Float16 store(Real value) { return {__half_as_ushort(__float2half_rn(value))}; }
#else
  static Real load(waywiser::Float16 value) { return waywiser::to_float(value); }
  static waywiser::Float16 store(Real value) { return waywiser::to_float16(value); }
#endif
};

template <typename R>
struct Complex {
  R re = 0, im = 0;

  APPS_CALLABLE friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  APPS_CALLABLE friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  APPS_CALLABLE friend Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  APPS_CALLABLE friend Complex operator*(R a, Complex b) { return {a * b.re, a * b.im}; }
};
template <typename R>
APPS_CALLABLE Complex<R> conjugate(Complex<R> a) {
  return {a.re, -a.im};
}
// i^k a
template <typename R>
APPS_CALLABLE Complex<R> turned(Complex<R> a, int k) {
  switch (k & 3) {
    case 0: return a;
    case 1: return {-a.im, a.re};
    case 2: return {-a.re, -a.im};
    default: return {a.im, -a.re};
  }
}

// Colour: three complex numbers. Spinor: four of them.
template <typename R>
struct Vector3 {
  Complex<R> c[3];

  APPS_CALLABLE friend Vector3 operator+(const Vector3& a, const Vector3& b) {
    return {{a.c[0] + b.c[0], a.c[1] + b.c[1], a.c[2] + b.c[2]}};
  }
};
template <typename R>
APPS_CALLABLE Vector3<R> turned(const Vector3<R>& a, int k) {
  return {{turned(a.c[0], k), turned(a.c[1], k), turned(a.c[2], k)}};
}
template <typename R>
struct Spinor {
  Vector3<R> s[4];
};

template <typename R>
struct Matrix3 {
  Complex<R> m[3][3];

  APPS_CALLABLE Vector3<R> times(const Vector3<R>& v) const {
    Vector3<R> result;
    for (int i = 0; i < 3; ++i) result.c[i] = m[i][0] * v.c[0] + m[i][1] * v.c[1] + m[i][2] * v.c[2];
    return result;
  }
  APPS_CALLABLE Matrix3 adjoint() const {
    Matrix3 result;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) result.m[i][j] = conjugate(m[j][i]);
    return result;
  }
  APPS_CALLABLE friend Matrix3 operator*(const Matrix3& a, const Matrix3& b) {
    Matrix3 result;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        result.m[i][j] = a.m[i][0] * b.m[0][j] + a.m[i][1] * b.m[1][j] + a.m[i][2] * b.m[2][j];
    return result;
  }
};

// -1 to 1, without any pattern.
APPS_CALLABLE inline double noise(std::uint64_t index) {
  std::uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 27;
  return static_cast<double>(mixed >> 11) * 0x1p-52 - 1;
}

// A matrix of SU(3) for each index: two rows of noise made orthonormal, and their cross product.
APPS_CALLABLE inline Matrix3<double> noise_matrix(std::uint64_t index) {
  Matrix3<double> u;
  for (std::uint64_t k = 0; k < 6; ++k) u.m[k / 3][k % 3] = {noise(12 * index + 2 * k), noise(12 * index + 2 * k + 1)};
  const auto scale = [](Complex<double>* row) {
    double sum = 0;
    for (int j = 0; j < 3; ++j) sum += row[j].re * row[j].re + row[j].im * row[j].im;
    for (int j = 0; j < 3; ++j) row[j] = (1 / std::sqrt(sum)) * row[j];
  };
  scale(u.m[0]);
  Complex<double> along;
  for (int j = 0; j < 3; ++j) along = along + conjugate(u.m[0][j]) * u.m[1][j];
  for (int j = 0; j < 3; ++j) u.m[1][j] = u.m[1][j] - along * u.m[0][j];
  scale(u.m[1]);
  for (int j = 0; j < 3; ++j) {
    const int k = (j + 1) % 3, l = (j + 2) % 3;
    u.m[2][j] = conjugate(u.m[0][k] * u.m[1][l] - u.m[0][l] * u.m[1][k]);
  }
  return u;
}

}  // namespace apps
