#include <type_traits>

#include "waywiser/collective/fused/host_block.hpp"
#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/collective/fused/lines_body.hpp"
#include "waywiser/collective/fused/packets_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"

namespace waywiser::fused {
namespace {

template <typename T, bool exact>
void run_block(HostBlock block, Method method, const Terms& terms, const Work& work) {
  switch (method) {
    case Method::packets: return PacketsBody<T, most_ranks, exact, HostBlock>(block, terms, work).run();
    case Method::one_shot: return PushBody<T, most_ranks, exact, HostBlock>(block, terms, work).run_one_shot();
    case Method::two_shot: return PushBody<T, most_ranks, exact, HostBlock>(block, terms, work).run_two_shot();
    case Method::lines: return LinesBody<T, most_ranks, 1, exact, HostBlock>(block, terms, work).run_one_shot();
    case Method::two_shot_lines:
      return LinesBody<T, most_ranks, 2, exact, HostBlock>(block, terms, work).run_two_shot();
  }
}

}  // namespace

std::string_view name(Method method) noexcept {
  constexpr std::string_view names[] = {"packets", "one_shot", "two_shot", "lines", "two_shot_lines"};
  return names[static_cast<std::size_t>(method)];
}

// What is exact has code of its own for one type only, as GPUs have it for all: speed is not what virtual GPUs are for.
void run_on_host(const Shape& shape, DataType type, const Terms& terms, const Work& work) {
  with_type(type, [&]<typename T>() {
    constexpr bool knows_exact = std::is_same_v<T, float>;
    for (unsigned block = 0; block < shape.blocks; ++block)
      if (const HostBlock part(block, shape.blocks, shape.threads); knows_exact && work.exact)
        run_block<T, knows_exact>(part, shape.method, terms, work);
      else
        run_block<T, false>(part, shape.method, terms, work);
  });
}

}  // namespace waywiser::fused
