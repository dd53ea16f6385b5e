#pragma once

#include "waywiser/kernels/device_code.hpp"

namespace waywiser {

// The same bytes as std::complex, whose operators kernels lack. Products are computed as in NumPy: a product with an
// infinity may be NaN.
template <typename Real>
struct Complex {
  Real re = 0, im = 0;

  WAYWISER_DEVICE Real real() const { return re; }
  WAYWISER_DEVICE Real imag() const { return im; }
};

// Each operation rounds by itself: with a fused multiply-add a * b would differ from b * a. Hosts get
// -ffp-contract=off.
template <typename Real>
WAYWISER_DEVICE inline Real rounded_product(Real a, Real b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Real) == sizeof(float))
    return __fmul_rn(a, b);
  else
    return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

template <typename Real>
WAYWISER_DEVICE inline Complex<Real> operator+(Complex<Real> a, Complex<Real> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename Real>
WAYWISER_DEVICE inline Complex<Real> operator*(Complex<Real> a, Complex<Real> b) {
  return {rounded_product(a.re, b.re) - rounded_product(a.im, b.im),
          rounded_product(a.re, b.im) + rounded_product(a.im, b.re)};
}
template <typename Real>
WAYWISER_DEVICE inline Complex<Real> operator/(Complex<Real> a, Real b) {
  return {a.re / b, a.im / b};
}

}  // namespace waywiser
