#pragma once

// The Wilson operator of lattice QCD on the sites of one rank (Wilson 1974; Gattringer and Lang, Quantum Chromodynamics
// on the Lattice, 2010, equation 5.51):
//   (D psi)(x) = sum over mu of (1 - gamma_mu) U_mu(x) psi(x + mu) + (1 + gamma_mu) U_mu(x - mu)^+ psi(x - mu)
// gamma_mu in the basis of DeGrand and Rossi, in which gamma_5 = gamma_1 gamma_2 gamma_3 gamma_4 is diagonal.
#include "apps/wilson_dslash/su3.hpp"

namespace apps {

constexpr int spinor_reals = 24, links_reals = 4 * 18;

// The sites of a rank in its arrays, with a ghost on each side; dimensions are t, z, y, x. One rank's arrays are
// `planar` where neighbouring threads should load neighbouring words.
struct Lattice {
  std::int64_t shape[4], first[4], count[4];  // of the whole lattice; this rank's sites
#if defined(__CUDACC__)
  static constexpr bool planar = true;
#else
  static constexpr bool planar = false;
#endif

  APPS_CALLABLE std::int64_t stride(int mu) const {
    std::int64_t stride = 1;
    for (int i = 3; i > mu; --i) stride *= count[i] + 2;
    return stride;
  }
  APPS_CALLABLE std::int64_t with_ghosts() const { return stride(0) * (count[0] + 2); }
  APPS_CALLABLE std::int64_t rows() const { return count[0] * count[1] * count[2]; }
  // Sites counted from the first own one: where they are in the arrays.
  APPS_CALLABLE std::int64_t at(const std::int64_t site[4]) const {
    return (((site[0] + 1) * (count[1] + 2) + site[1] + 1) * (count[2] + 2) + site[2] + 1) * (count[3] + 2) + site[3] +
           1;
  }
  // The number of a site in the whole lattice, which is periodic.
  APPS_CALLABLE std::int64_t number(const std::int64_t site[4]) const {
    std::int64_t number = 0;
    for (int i = 0; i < 4; ++i) number = number * shape[i] + (first[i] + site[i] + shape[i]) % shape[i];
    return number;
  }
  // Number `k` of an array's place of `at`.
  APPS_CALLABLE std::int64_t place(std::int64_t at, int reals, int k) const {
    return planar ? k * with_ghosts() + at : at * reals + k;
  }
};

// gamma_mu takes upper spin a to lower spin `lower` with the factor i^turns, and back with its conjugate.
struct Gamma {
  int lower[2], turns[2];
};
// Of t, z, y, x.
APPS_CALLABLE constexpr Gamma gamma_of(int mu) {
  return mu == 0   ? Gamma{{2, 3}, {0, 0}}
         : mu == 1 ? Gamma{{2, 3}, {1, 3}}
         : mu == 2 ? Gamma{{3, 2}, {2, 0}}
                   : Gamma{{3, 2}, {1, 1}};
}

template <typename S>
struct LatticeView {
  using Real = typename Stored<S>::Real;
  Lattice lattice;

  APPS_CALLABLE Spinor<Real> spinor(const S* values, std::int64_t at) const {
    Spinor<Real> psi;
    for (int k = 0; k < 12; ++k)
      psi.s[k / 3].c[k % 3] = {Stored<S>::load(values[lattice.place(at, spinor_reals, 2 * k)]),
                               Stored<S>::load(values[lattice.place(at, spinor_reals, 2 * k + 1)])};
    return psi;
  }
  APPS_CALLABLE void set_spinor(S* values, std::int64_t at, const Spinor<Real>& psi) const {
    for (int k = 0; k < 12; ++k) {
      values[lattice.place(at, spinor_reals, 2 * k)] = Stored<S>::store(psi.s[k / 3].c[k % 3].re);
      values[lattice.place(at, spinor_reals, 2 * k + 1)] = Stored<S>::store(psi.s[k / 3].c[k % 3].im);
    }
  }
  APPS_CALLABLE Matrix3<Real> link(const S* values, std::int64_t at, int mu) const {
    Matrix3<Real> u;
    for (int k = 0; k < 9; ++k)
      u.m[k / 3][k % 3] = {Stored<S>::load(values[lattice.place(at, links_reals, mu * 18 + 2 * k)]),
                           Stored<S>::load(values[lattice.place(at, links_reals, mu * 18 + 2 * k + 1)])};
    return u;
  }
  APPS_CALLABLE void set_link(S* values, std::int64_t at, int mu, const Matrix3<double>& u) const {
    for (int k = 0; k < 9; ++k) {
      const Complex<double> c = u.m[k / 3][k % 3];
      values[lattice.place(at, links_reals, mu * 18 + 2 * k)] = Stored<S>::store(static_cast<Real>(c.re));
      values[lattice.place(at, links_reals, mu * 18 + 2 * k + 1)] = Stored<S>::store(static_cast<Real>(c.im));
    }
  }
};

// D / 8 in a part of the sites; the factor keeps values near one however often it is applied.
template <typename S>
struct Dslash {
  using Real = typename Stored<S>::Real;
  LatticeView<S> view;
  const S* links;
  const S* from;
  S* to;
  std::int64_t first[4], count[4];  // the part

  // Adds (1 - gamma_mu) U psi; `sign` -1: (1 + gamma_mu).
  APPS_CALLABLE static void add(Spinor<Real>& sum, int mu, int sign, const Matrix3<Real>& u, const Spinor<Real>& psi) {
    const Gamma gamma = gamma_of(mu);
    for (int a = 0; a < 2; ++a) {
      // (1 - gamma) has rank 2: the lower spins follow from the upper ones. -1 is two quarter turns.
      const int minus = sign > 0 ? 2 : 0;
      const Vector3<Real> half = psi.s[a] + turned(psi.s[gamma.lower[a]], gamma.turns[a] + minus);
      const Vector3<Real> moved = u.times(half);
      sum.s[a] = sum.s[a] + moved;
      sum.s[gamma.lower[a]] = sum.s[gamma.lower[a]] + turned(moved, 4 - gamma.turns[a] + minus);
    }
  }
  APPS_CALLABLE void operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t site[4] = {first[0] + row / (count[1] * count[2]), first[1] + row / count[2] % count[1],
                                  first[2] + row % count[2], first[3] + column};
    (*this)(view.lattice.at(site));
  }
  APPS_CALLABLE void steady(std::int64_t at) const { (*this)(at); }
  APPS_CALLABLE void operator()(std::int64_t at) const {
    Spinor<Real> sum;
    // A GPU keeps spinors in registers then: no spin is indexed at run time.
    WAYWISER_UNROLL
    for (int mu = 0; mu < 4; ++mu) {
      const std::int64_t stride = view.lattice.stride(mu);
      add(sum, mu, 1, view.link(links, at, mu), view.spinor(from, at + stride));
      add(sum, mu, -1, view.link(links, at - stride, mu).adjoint(), view.spinor(from, at - stride));
    }
    for (Vector3<Real>& each : sum.s)
      for (Complex<Real>& c : each.c) c = static_cast<Real>(0.125) * c;
    view.set_spinor(to, at, sum);
  }
};

}  // namespace apps
