#include "waywiser/collective/gpu/call_comparison.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"

namespace waywiser {
namespace {

constexpr unsigned op_bits = 8;

}  // namespace

CallComparison::CallComparison(Session& session, const std::shared_ptr<const Members>& members, const Call& call)
    : session_(session),
      call_(call),
      rank_(members->rank),
      mine_{call.count << op_bits | static_cast<std::uint64_t>(call.op)},
      all_(static_cast<std::size_t>(members->size())),
      execution_(session) {
  const std::size_t size = bytes_of(call.type);
  CollectiveCall wanted;
  wanted.operation = Collective::all_gather;
  wanted.rank = members->rank;
  wanted.ranks = members->size();
  wanted.count = sizeof(std::uint64_t) / size;
  const auto bytes = [](auto& words) { return std::as_bytes(std::span(words)); };
  const ConstRegion mine{bytes(mine_).data(), bytes(mine_).size(), host(0)};
  const Region all{std::as_writable_bytes(std::span(all_)).data(), bytes(all_).size(), host(0)};
  Call compared = call;
  compared.op = ReduceOp::sum;  // so that nothing is divided
  execution_.begin(members, compared,
                   std::make_shared<const Schedule>(find_algorithm(Collective::all_gather, "direct").make(wanted)),
                   {mine, call.type}, {all, call.type});
}

bool CallComparison::advance() {
  if (!execution_.advance()) return false;
  for (std::size_t other = 0; other < all_.size(); ++other) {
    Call theirs = call_;
    theirs.count = all_[other] >> op_bits;
    theirs.op = static_cast<ReduceOp>(all_[other] & ((1u << op_bits) - 1));
    if (const std::string why = difference(rank_, call_, static_cast<int>(other), theirs); !why.empty())
      session_.fail(ErrorKind::invalid_input, why);
  }
  return true;
}

}  // namespace waywiser
