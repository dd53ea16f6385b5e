#pragma once

#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "apps/comparison.hpp"
#include "apps/exchange.hpp"
#include "apps/fused.hpp"
#include "apps/grid.hpp"
#include "apps/wilson_dslash/lattice.hpp"

namespace apps {

enum class Links { plane_wave, noise };

inline Lattice lattice_of(const waywiser::HaloGrid& grid, int rank) {
  const waywiser::GridBox& box = grid.boxes[static_cast<std::size_t>(rank)];
  Lattice lattice{};
  for (std::size_t i = 0; i < 4; ++i) {
    lattice.shape[i] = grid.shape[i];
    lattice.first[i] = box.first[i];
    lattice.count[i] = box.count[i];
  }
  return lattice;
}

// A plane wave on links that a change of gauge makes of ones: U_mu(x) = O(x) O(x + mu)^+ and psi(x) = O(x) exp(i p x)
// s. The operator multiplies its spins `s` by a matrix of 4 x 4, whatever O is; so what comes out is known at every
// site.
struct PlaneWave {
  Lattice lattice;
  double momentum[4];
  Complex<double> spins[4];

  APPS_CALLABLE Spinor<double> operator()(const std::int64_t site[4]) const {
    double angle = 0;
    for (int i = 0; i < 4; ++i) angle += momentum[i] * static_cast<double>(lattice.first[i] + site[i]);
    const Complex<double> wave{std::cos(angle), std::sin(angle)};
    const Vector3<double> colour =
        noise_matrix(static_cast<std::uint64_t>(lattice.number(site))).times({{{1, 0}, {0, 0.5}, {-0.5, 0.5}}});
    Spinor<double> psi;
    for (int s = 0; s < 4; ++s)
      for (int c = 0; c < 3; ++c) psi.s[s].c[c] = spins[s] * wave * colour.c[c];
    return psi;
  }
  // The spins after one more application of D / 8.
  void apply() {
    Complex<double> next[4];
    for (int mu = 0; mu < 4; ++mu) {
      const Gamma gamma = gamma_of(mu);
      for (int s = 0; s < 4; ++s) next[s] = next[s] + 0.25 * std::cos(momentum[mu]) * spins[s];
      const Complex<double> factor{0, -0.25 * std::sin(momentum[mu])};
      for (int a = 0; a < 2; ++a) {
        next[a] = next[a] + factor * turned(spins[gamma.lower[a]], gamma.turns[a]);
        next[gamma.lower[a]] = next[gamma.lower[a]] + factor * turned(spins[a], 4 - gamma.turns[a]);
      }
    }
    for (int s = 0; s < 4; ++s) spins[s] = next[s];
  }
};

// The operator on one rank's sites, applied again and again.
template <typename S>
class WilsonDslash {
 public:
  using Real = typename Stored<S>::Real;

  WilsonDslash(waywiser::Group& group, waywiser::HaloGrid grid, int threads)
      : group_(group),
        processor_(group, threads),
        grid_(std::move(grid)),
        lattice_(lattice_of(grid_, group.rank())),
        parts_(parts_for<Processor>(box().count)),
        links_(processor_, lattice_.with_ghosts() * links_reals),
        psi_{{processor_, lattice_.with_ghosts() * spinor_reals}, {processor_, lattice_.with_ghosts() * spinor_reals}},
        exchanges_{{group, processor_, face_partition(grid_, group.rank()), {field(0)}},
                   {group, processor_, face_partition(grid_, group.rank()), {field(1)}}} {}

  const waywiser::GridBox& box() const { return grid_.boxes[static_cast<std::size_t>(group_.rank())]; }
  void use(const Way& way) {
    is_fused_ = way.is_fused();
    if (is_fused_ && !fused_) fused_.emplace(group_, processor_, grid_, spinor_reals, Lattice::planar);
    if (is_fused_) return fused_->use(way);
    for (Exchange& each : exchanges_) each.use(way);
  }
  waywiser::HaloVariant variant() const noexcept { return exchanges_[0].variant(); }

  // With those of the ghosts, which never change again.
  void set_links(Links kind) {
    const LatticeView<S> view{lattice_};
    S* links = links_.data();
    processor_.for_each(lattice_.with_ghosts(), [=] APPS_CALLABLE(std::int64_t at) {
      const Lattice& sites = view.lattice;
      std::int64_t site[4], rest = at;
      for (int i = 3; i >= 0; --i) {
        site[i] = rest % (sites.count[i] + 2) - 1;
        rest /= sites.count[i] + 2;
      }
      const auto number = static_cast<std::uint64_t>(sites.number(site));
      for (int mu = 0; mu < 4; ++mu) {
        std::int64_t next[4] = {site[0], site[1], site[2], site[3]};
        ++next[mu];
        view.set_link(
            links, at, mu,
            kind == Links::noise
                ? noise_matrix(4 * number + static_cast<std::uint64_t>(mu))
                : noise_matrix(number) * noise_matrix(static_cast<std::uint64_t>(sites.number(next))).adjoint());
      }
    });
  }

  void reset() {
    wave_ = {lattice_, {}, {{1, 0}, {0.5, -0.5}, {0, 0.75}, {-0.25, 1}}};
    wave_.momentum[0] = 2 * std::numbers::pi / static_cast<double>(lattice_.shape[0]);
    wave_.momentum[2] = 2 * std::numbers::pi / static_cast<double>(lattice_.shape[2]);
    done_ = 0;
    set(wave_);
  }
  // The sites inside are computed while the ghosts travel.
  void steps(std::int64_t count) {
    if (is_fused_) return fused_steps(count);
    for (; count > 0; --count) {
      Exchange& exchange = exchanges_[done_ % 2];
      exchange.start();
      apply(parts_.inner);
      exchange.finish();
      for (const CellBox& part : parts_.outer) apply(part);
      ++done_;
      wave_.apply();
    }
    processor_.wait();
  }
  // The largest difference from the exact result.
  double error() {
    const LatticeView<S> view{lattice_};
    const PlaneWave wave = wave_;
    const S* values = psi(done_ % 2);
    return processor_.max(lattice_.rows() * lattice_.count[3], [=] APPS_CALLABLE(std::int64_t i) {
      const Lattice& sites = view.lattice;
      std::int64_t site[4], rest = i;
      for (int k = 3; k >= 0; --k) {
        site[k] = rest % sites.count[k];
        rest /= sites.count[k];
      }
      const Spinor<Real> found = view.spinor(values, sites.at(site));
      const Spinor<double> exact = wave(site);
      double most = 0;
      for (int k = 0; k < 12; ++k) {
        const Complex<Real> a = found.s[k / 3].c[k % 3];
        const Complex<double> b = exact.s[k / 3].c[k % 3];
        const double off = std::fabs(static_cast<double>(a.re) - b.re) + std::fabs(static_cast<double>(a.im) - b.im);
        most = !(off <= most) ? off : most;  // NaN too
      }
      return most == most ? most : differs;
    });
  }

  // <phi, gamma_5 D gamma_5 psi> - <D phi, psi>, which is zero, of noise on links of noise; relative to the number of
  // their terms.
  double hermiticity_error() {
    set_links(Links::noise);
    const auto number_of_sites =
        static_cast<std::uint64_t>(grid_.shape[0] * grid_.shape[1] * grid_.shape[2] * grid_.shape[3]);
    const NoiseSpinor psi{lattice_, 0, false}, phi{lattice_, number_of_sites, false};
    done_ = 0;
    set(NoiseSpinor{lattice_, 0, true});
    steps(1);
    const Complex<double> right = product(phi, true);
    done_ = 0;
    set(phi);
    steps(1);
    const Complex<double> left = conjugate(product(psi, false));
    return std::hypot(left.re - right.re, left.im - right.im) / (12.0 * static_cast<double>(number_of_sites));
  }

  // Of this rank's sites: spinors after the last application, or links; real and imaginary parts of a site together.
  std::vector<double> spinors() {
    if (is_fused_) {
      const S* from = psi(done_ % 2);
      S* to = psi_[done_ % 2].data();
      processor_.for_each(lattice_.with_ghosts() * spinor_reals,
                          [=] APPS_CALLABLE(std::int64_t i) { to[i] = from[i]; });
    }
    return own(psi_[done_ % 2].values(), spinor_reals);
  }
  std::vector<double> links() const { return own(links_.values(), links_reals); }

  struct NoiseSpinor {
    Lattice lattice;
    std::uint64_t offset;
    bool times_gamma5;

    APPS_CALLABLE Spinor<double> operator()(const std::int64_t site[4]) const {
      const std::uint64_t first = 24 * (offset + static_cast<std::uint64_t>(lattice.number(site)));
      Spinor<double> psi;
      for (std::uint64_t k = 0; k < 12; ++k) {
        const double sign = times_gamma5 && k >= 6 ? -1 : 1;
        psi.s[k / 3].c[k % 3] = {sign * noise(first + 2 * k), sign * noise(first + 2 * k + 1)};
      }
      return psi;
    }
  };

  // The spinors before the next application.
  template <typename Function>
  void set(Function spinor_of) {
    const LatticeView<S> view{lattice_};
    S* values = psi(done_ % 2);
    processor_.for_each(lattice_.rows(), lattice_.count[3], [=] APPS_CALLABLE(std::int64_t row, std::int64_t column) {
      const Lattice& sites = view.lattice;
      const std::int64_t site[4] = {row / (sites.count[1] * sites.count[2]), row / sites.count[2] % sites.count[1],
                                    row % sites.count[2], column};
      const Spinor<double> exact = spinor_of(site);
      Spinor<Real> psi;
      for (int k = 0; k < 12; ++k) {
        const Complex<double> c = exact.s[k / 3].c[k % 3];
        psi.s[k / 3].c[k % 3] = {static_cast<Real>(c.re), static_cast<Real>(c.im)};
      }
      view.set_spinor(values, sites.at(site), psi);
    });
    processor_.wait();
  }
  // <what `other` has, the spinors, times gamma_5>, of all ranks.
  Complex<double> product(const NoiseSpinor& other, bool times_gamma5) {
    const LatticeView<S> view{lattice_};
    const S* values = psi(done_ % 2);
    const Complex<double> mine =
        processor_.sum(lattice_.rows(), lattice_.count[3], [=] APPS_CALLABLE(std::int64_t row, std::int64_t column) {
          const Lattice& sites = view.lattice;
          const std::int64_t site[4] = {row / (sites.count[1] * sites.count[2]), row / sites.count[2] % sites.count[1],
                                        row % sites.count[2], column};
          const Spinor<Real> here = view.spinor(values, sites.at(site));
          const Spinor<double> there = other(site);
          Complex<double> sum;
          for (int k = 0; k < 12; ++k) {
            const Complex<Real> c = here.s[k / 3].c[k % 3];
            const double sign = times_gamma5 && k >= 6 ? -1 : 1;
            sum = sum + conjugate(there.s[k / 3].c[k % 3]) *
                            Complex<double>{sign * static_cast<double>(c.re), sign * static_cast<double>(c.im)};
          }
          return sum;
        });
    return {sum_of_ranks(group_, mine.re), sum_of_ranks(group_, mine.im)};
  }

 private:
  waywiser::HaloArray field(std::size_t which) { return psi_[which].field(spinor_reals, Lattice::planar); }
  S* psi(std::int64_t which) { return is_fused_ ? fused_->array(static_cast<int>(which)) : psi_[which].data(); }
  // All of an application in one kernel.
  void fused_steps(std::int64_t count) {
    if (done_ == 0) fused_->begin();
    for (; count > 0; --count) {
      fused_->step(static_cast<int>(1 - done_ % 2),
                   Dslash<S>{{lattice_}, links_.data(), psi(done_ % 2), psi(1 - done_ % 2), {}, {}});
      ++done_;
      wave_.apply();
    }
    fused_->wait();
  }
  void apply(const CellBox& part) {
    Dslash<S> dslash{{lattice_}, links_.data(), psi(done_ % 2), psi(1 - done_ % 2), {}, {}};
    for (std::size_t i = 0; i < 4; ++i) {
      dslash.first[i] = part.first[i];
      dslash.count[i] = part.count[i];
    }
    processor_.for_each(part.count[0] * part.count[1] * part.count[2], part.count[3], dslash);
  }
  std::vector<double> own(const std::vector<S>& all, int reals) const {
    std::vector<double> found;
    const std::int64_t* n = lattice_.count;
    for (std::int64_t i = 0; i < lattice_.rows() * n[3]; ++i) {
      const std::int64_t site[4] = {i / (n[1] * n[2] * n[3]), i / (n[2] * n[3]) % n[1], i / n[3] % n[2], i % n[3]};
      for (int k = 0; k < reals; ++k)
        found.push_back(static_cast<double>(
            Stored<S>::load(all[static_cast<std::size_t>(lattice_.place(lattice_.at(site), reals, k))])));
    }
    return found;
  }

  waywiser::Group& group_;
  Processor processor_;
  waywiser::HaloGrid grid_;
  Lattice lattice_;
  CellParts parts_;
  Array<S> links_, psi_[2];  // application n reads psi_[n % 2]
  Exchange exchanges_[2];
  std::optional<FusedField<S, 4>> fused_;  // once it is in use
  bool is_fused_ = false;
  PlaneWave wave_{};
  std::int64_t done_ = 0;
};

}  // namespace apps
