#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <waywiser/base/error.hpp>
#include <waywiser/halo/halo_exchange.hpp>
#include <waywiser/halo/tuning.hpp>

#include "apps/parallel.hpp"
#ifdef APPS_MPI
#include "apps/mpi_halo.hpp"
#endif
#ifdef __CUDACC__
#include "apps/nccl_halo.hpp"
#endif

namespace apps {

using Seconds = double;

inline Seconds now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A way to exchange: a variant of the library, what the library chooses by measuring, plain MPI or NCCL, within the
// kernel that computes (fused.hpp), the same kernel with NVSHMEM's calls, or not at all, which shows that a program
// notices it.
struct Way {
  enum class Kind { variant, automatic, mpi, nccl, fused, nvshmem, none };
  Kind kind = Kind::automatic;
  waywiser::HaloVariant variant = waywiser::HaloVariant::packed;
  std::string answers{};  // of automatic: the file that keeps what was chosen; empty: none

  bool is_fused() const noexcept { return kind == Kind::fused || kind == Kind::nvshmem; }
  std::string name() const {
    if (kind == Kind::automatic) return "automatic";
    if (kind == Kind::none) return "none";
    if (kind == Kind::nccl) return "nccl";
    if (kind == Kind::fused) return "fused";
    if (kind == Kind::nvshmem) return "nvshmem";
    return kind == Kind::mpi ? "mpi" : std::string(waywiser::name(variant));
  }
};

// All that this program compares.
inline std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const waywiser::HaloVariant variant : waywiser::halo_variants) ways.push_back({Way::Kind::variant, variant});
  ways.push_back({Way::Kind::automatic});
#ifdef APPS_MPI
  ways.push_back({Way::Kind::mpi});
#endif
#ifdef __CUDACC__
  ways.push_back({Way::Kind::nccl});
#endif
  return ways;
}

// Those in which one kernel does all.
inline std::vector<Way> fused_ways() {
#ifdef APPS_NVSHMEM
  return {{Way::Kind::fused}, {Way::Kind::nvshmem}};
#else
  return {{Way::Kind::fused}};
#endif
}

// Exchanges fields of a program; the way can change between two exchanges.
class Exchange {
 public:
  // Collective.
  Exchange(waywiser::Group& group, Processor& processor, const waywiser::HaloPartition& partition,
           std::vector<waywiser::HaloArray> fields)
      : processor_(processor), halo_(group, partition, fields) {
#ifdef APPS_MPI
    mpi_.emplace(partition, fields);
#endif
#ifdef __CUDACC__
    make_nccl_ = [&group, &processor, partition, fields] {
      return std::make_unique<NcclHalo>(group, processor, partition, fields);
    };
#endif
  }

  // Collective. Throws unavailable at all ranks. `seconds`: how long automatic may measure, the first time; what it has
  // found is used from then on.
  void use(const Way& way, Seconds seconds = 0.2) {
    kind_ = way.kind;
    if (way.kind == Way::Kind::variant) halo_.use(way.variant);
#ifdef __CUDACC__
    if (way.kind == Way::Kind::nccl && !nccl_) nccl_ = make_nccl_();
#endif
    if (way.kind != Way::Kind::automatic) return;
    if (!tuned_) {
      tuned_ = (way.answers.empty() ? halo_.tune(seconds) : halo_.tune(seconds, way.answers)).chosen;
      for (const waywiser::HaloSideUse& side : halo_.sides()) of_sides_.push_back(side.variant);
    } else if (*tuned_ == waywiser::HaloVariant::mixed) {
      halo_.use(of_sides_);
    } else {
      halo_.use(*tuned_);
    }
  }
  // After use(automatic): what was chosen.
  waywiser::HaloVariant variant() const noexcept { return halo_.variant(); }

  void start() {
    if (by_library()) processor_.start(halo_);
#ifdef APPS_MPI
    if (kind_ == Way::Kind::mpi) mpi_->start();
#endif
#ifdef __CUDACC__
    if (kind_ == Way::Kind::nccl) nccl_->start();
#endif
  }
  void finish() {
    if (by_library()) halo_.finish();
#ifdef APPS_MPI
    if (kind_ == Way::Kind::mpi) mpi_->finish();
#endif
  }
  void exchange() {
    start();
    finish();
  }

 private:
  bool by_library() const { return kind_ == Way::Kind::variant || kind_ == Way::Kind::automatic; }

  Processor& processor_;
  waywiser::HaloExchange halo_;
  Way::Kind kind_ = Way::Kind::variant;
  std::optional<waywiser::HaloVariant> tuned_;   // by automatic
  std::vector<waywiser::HaloVariant> of_sides_;  // the same, if they differ
#ifdef APPS_MPI
  std::optional<MpiHalo> mpi_;
#endif
#ifdef __CUDACC__
  std::function<std::unique_ptr<NcclHalo>()> make_nccl_;
  std::unique_ptr<NcclHalo> nccl_;  // once it is in use
#endif
};

}  // namespace apps
