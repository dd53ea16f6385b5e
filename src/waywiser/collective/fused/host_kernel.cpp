#include <type_traits>

#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/collective/fused/ll128_body.hpp"
#include "waywiser/collective/fused/ll_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/collective/fused/sum_body.hpp"
#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser::fused {
namespace {

template <typename T, bool exact>
void run_block(block::HostBlock block, Method method, const FusedArguments& terms, const FusedWork& work) {
  switch (method) {
    case Method::ll: return LlBody<T, block::max_ranks, exact, block::HostBlock>(block, terms, work).run();
    case Method::one_shot:
      return PushBody<T, block::max_ranks, exact, block::HostBlock>(block, terms, work).run_one_shot();
    case Method::two_shot:
      return PushBody<T, block::max_ranks, exact, block::HostBlock>(block, terms, work).run_two_shot();
    case Method::ll128:
      return Ll128Body<T, block::max_ranks, 1, exact, block::HostBlock>(block, terms, work).run_one_shot();
    case Method::two_shot_ll128:
      return Ll128Body<T, block::max_ranks, 2, exact, block::HostBlock>(block, terms, work).run_two_shot();
  }
}

}  // namespace

std::string_view name(Method method) noexcept {
  constexpr std::string_view names[] = {"LL", "one_shot", "two_shot", "LL128", "two_shot_LL128"};
  return names[static_cast<std::size_t>(method)];
}

// Only one type has the specialised code for exact addresses, unlike on GPUs: virtual GPUs need no speed.
void run_on_host(const KernelShape& shape, const FusedArguments& terms, const FusedWork& work) {
  block::begin_unless(work.failed);
  with_kernel_type(work.type, work.op, work.reduced, [&]<typename T>() {
    constexpr bool knows_exact = std::is_same_v<T, float>;
    for (unsigned block = 0; block < shape.blocks; ++block)
      if (const block::HostBlock part(block, shape.blocks, shape.threads); knows_exact && work.exact)
        run_block<T, knows_exact>(part, shape.method, terms, work);
      else
        run_block<T, false>(part, shape.method, terms, work);
  });
}

void run_on_host(const SumArguments& sum) {
  with_kernel_type(sum.type, sum.op, true, [&]<typename T>() {
    constexpr unsigned blocks = 2, threads = 64;  // few: one host thread does all
    for (unsigned block = 0; block < blocks; ++block)
      add_parts<T, block::max_ranks, false>(block::HostBlock(block, blocks, threads), sum);
  });
}

}  // namespace waywiser::fused
