#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "waywiser/collective/gpu/kernel_domain.hpp"
#include "waywiser/collective/gpu/stream_engine.hpp"
#include "waywiser/collective/gpu/stream_order.hpp"
#include "waywiser/collective/on_stream/description.hpp"

namespace waywiser {

// Collectives by fused kernels, where those serve all ranks of the group; also the parts of other engines' calls that
// kernels carry out within this rank's domain.
class KernelEngine final : public StreamEngine {
 public:
  // Collective, see KernelDomain.
  KernelEngine(RankExchange& exchange, Session& session, const Members& members, StreamOrder& order);

  KernelDomain& domain() noexcept { return domain_; }
  const KernelDomain& domain() const noexcept { return domain_; }
  // Collective: sets memory aside, so that no operation of up to `largest` bytes a block waits for that.
  void reserve(Bytes largest);

  std::string why_not(const GpuAlgorithm& way, const CollectiveCall& call) const override;
  GpuAlgorithm default_way(const CollectiveCall& call) const override;
  bool prepare(const GpuAlgorithm& way, const CollectiveCall& call, bool capturing) override;
  void enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
               Stream& stream) override;
  std::optional<Error> failure(const std::string& group) const override { return domain_.failure(group); }
  void stop() noexcept override { domain_.stop(); }

  // A call within the domain, or a part of a larger one, which the ranks compare `as`.
  void run(const GpuAlgorithm& way, const CollectiveCall& call, ReduceOp op, ConstRegion input, Region output,
           Stream& stream, const on_stream::Description* as = nullptr);
  // Every rank of the domain hears from every other rank that it makes the same call. Without kernels there is no nod.
  void nod(const on_stream::Description& description, int ranks, Stream& stream);

 private:
  void enlarge_until(const on_stream::Description& as, const std::function<bool(const FusedOptions&)>& is_enough);

  RankExchange& exchange_;
  Session& session_;
  StreamOrder& order_;
  const int ranks_;
  KernelDomain domain_;
  std::size_t enlarged_ = 0;  // the number of larger_memories() tried
};

}  // namespace waywiser
