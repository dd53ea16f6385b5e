#pragma once

#include <memory>
#include <vector>

#include "apps/moe_dispatch/layer.hpp"
#if defined(__CUDACC__)
#include "apps/nccl_halo.hpp"
#endif

namespace apps {

// The same by two all-to-alls: kernels of their own pack what each rank gets, multiply what has come, and add up. Every
// rank knows beforehand which rows come: that is not timed.
class PackedLayer {
 public:
  enum class By { library, nccl };

  // Collective. Throws unavailable at all ranks.
  PackedLayer(waywiser::Group& group, Processor& processor, const ExpertLayer& layer, By by)
      : group_(group),
        processor_(processor),
        layer_(layer),
        given_(row_counts(routes_of(layer, layer.rank), -1)),
        taken_(taken_counts()),
        rows_(processor, total(given_)),
        factors_(processor, total(taken_)),
        places_(processor, layer.tokens * layer.ranks),
        packed_(processor, total(given_) * layer.hidden),
        came_(processor, total(taken_) * layer.hidden),
        by_(by) {
#if defined(__CUDACC__)
    if (by == By::nccl) nccl_ = Nccl::of(group);
#endif
    make_lists();
  }

  void step(const Eight* tokens, Eight* results) {
    const std::int64_t vectors = layer_.vectors(), ranks = layer_.ranks;
    const std::int64_t *rows = rows_.data(), *places = places_.data();
    const float* factors = factors_.data();
    auto *packed = reinterpret_cast<Eight*>(packed_.data()), *came = reinterpret_cast<Eight*>(came_.data());
    processor_.for_each(rows_.size(), vectors, [=] APPS_CALLABLE(std::int64_t row, std::int64_t i) {
      packed[row * vectors + i] = tokens[rows[row] * vectors + i];
    });
    exchange(packed_, given_, came_, taken_);
    processor_.for_each(factors_.size(), vectors, [=] APPS_CALLABLE(std::int64_t row, std::int64_t i) {
      Eight eight = came[row * vectors + i];
      for (Bfloat16& value : eight.values) value = narrow(factors[row] * widen(value));
      came[row * vectors + i] = eight;
    });
    exchange(came_, taken_, packed_, given_);
    processor_.for_each(layer_.tokens, vectors, [=] APPS_CALLABLE(std::int64_t token, std::int64_t i) {
      float sums[8] = {};
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const std::int64_t row = places[token * ranks + rank];
        if (row < 0) continue;
        const Eight eight = packed[row * vectors + i];
        for (int k = 0; k < 8; ++k) sums[k] += widen(eight.values[k]);
      }
      Eight all;
      for (int k = 0; k < 8; ++k) all.values[k] = narrow(sums[k]);
      results[token * vectors + i] = all;
    });
  }
  void wait() { processor_.wait(); }

  APPS_CALLABLE static float widen(Bfloat16 value) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(std::uint32_t{value.bits} << 16);
#else
    return waywiser::to_float(value);
#endif
  }
  APPS_CALLABLE static Bfloat16 narrow(float value) {
#if defined(__CUDA_ARCH__)
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
    return waywiser::to_bfloat16(value);
#endif
  }

 private:
  using Counts = std::vector<std::size_t>;

  // By rank: how many of these tokens have experts there; of one rank only, unless it is -1.
  Counts row_counts(const std::vector<Route>& routes, int only) const {
    Counts counts(static_cast<std::size_t>(layer_.ranks));
    for (const Route& route : routes)
      for (int rank = 0; rank < layer_.ranks; ++rank)
        if ((only < 0 || rank == only) && (route.ranks(layer_) >> rank & 1) != 0)
          ++counts[static_cast<std::size_t>(rank)];
    return counts;
  }
  Counts taken_counts() const {
    Counts counts;
    for (int rank = 0; rank < layer_.ranks; ++rank)
      counts.push_back(row_counts(routes_of(layer_, rank), layer_.rank)[static_cast<std::size_t>(layer_.rank)]);
    return counts;
  }
  static std::int64_t total(const Counts& counts) {
    std::size_t all = 0;
    for (const std::size_t count : counts) all += count;
    return static_cast<std::int64_t>(all);
  }
  // Rows of a rank in the order of its tokens.
  void make_lists() {
    const std::vector<Route> routes = routes_of(layer_, layer_.rank);
    std::vector<std::int64_t> rows, places(static_cast<std::size_t>(layer_.tokens * layer_.ranks), -1);
    for (int rank = 0; rank < layer_.ranks; ++rank)
      for (std::int64_t token = 0; token < layer_.tokens; ++token) {
        if ((routes[static_cast<std::size_t>(token)].ranks(layer_) >> rank & 1) == 0) continue;
        places[static_cast<std::size_t>(token * layer_.ranks + rank)] = static_cast<std::int64_t>(rows.size());
        rows.push_back(token);
      }
    std::vector<float> factors;
    for (int rank = 0; rank < layer_.ranks; ++rank)
      for (const Route& route : routes_of(layer_, rank))
        if ((route.ranks(layer_) >> layer_.rank & 1) != 0) factors.push_back(route.factor_at(layer_, layer_.rank));
    rows_.assign(rows);
    factors_.assign(factors);
    places_.assign(places);
  }

  void exchange(Array<Bfloat16>& give, const Counts& given, Array<Bfloat16>& take, const Counts& taken) {
#if defined(__CUDACC__)
    if (by_ == By::nccl) return by_nccl(give, given, take, taken);
#endif
    const auto numbers = [&](const Counts& rows) {
      Counts all;
      for (const std::size_t count : rows) all.push_back(count * static_cast<std::size_t>(layer_.hidden));
      return all;
    };
    const Counts from = numbers(given), to = numbers(taken);
#if defined(__CUDACC__) || defined(APPS_VIRTUAL_GPUS)
    group_.all_to_all_v(give.elements(), from, take.elements(), to, waywiser::Mode::on(processor_.stream()));
#else
    group_.all_to_all_v(give.elements(), from, take.elements(), to);
#endif
  }
#if defined(__CUDACC__)
  void by_nccl(Array<Bfloat16>& give, const Counts& given, Array<Bfloat16>& take, const Counts& taken) {
    const auto row = static_cast<std::size_t>(layer_.hidden) * sizeof(Bfloat16);
    auto *from = reinterpret_cast<std::byte*>(give.data()), *to = reinterpret_cast<std::byte*>(take.data());
    nccl_->start();
    for (int rank = 0; rank < layer_.ranks; ++rank) {
      const std::size_t out = given[static_cast<std::size_t>(rank)] * row,
                        in = taken[static_cast<std::size_t>(rank)] * row;
      nccl_->send(from, out, rank, processor_.native());
      nccl_->receive(to, in, rank, processor_.native());
      from += out;
      to += in;
    }
    nccl_->end();
  }
  std::shared_ptr<Nccl> nccl_;
#endif

  waywiser::Group& group_;
  Processor& processor_;
  const ExpertLayer layer_;
  const Counts given_, taken_;
  Array<std::int64_t> rows_;       // the token of each packed row
  Array<float> factors_;           // of each row that comes
  Array<std::int64_t> places_;     // by token and rank: the packed row, or -1
  Array<Bfloat16> packed_, came_;  // in whole vectors
  const By by_;
};

}  // namespace apps
