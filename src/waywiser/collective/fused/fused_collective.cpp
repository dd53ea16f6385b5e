#include "waywiser/collective/fused/fused_collective.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

fused::LandingLayout layout_of(int ranks, const FusedOptions& options) {
  if (ranks < 2 || ranks > static_cast<int>(block::max_ranks))
    throw Error(ErrorKind::invalid_input, "fused collectives are for 2 to 8 ranks, not " + std::to_string(ranks));
  return {static_cast<std::uint32_t>(ranks), (options.ll_bytes + 15) / 16 * 16,
          (options.bulk_bytes + 4095) / 4096 * 4096,
          (block::pairs_for(options.ll128_bytes) + static_cast<Bytes>(ranks) + 15) / 16 * 16};
}

// The areas of both shots of a turn are consecutive: an operation with one shot uses both.
Bytes most_at_once(const fused::LandingLayout& layout, fused::Method method) {
  constexpr Bytes data = block::words_of_pair * sizeof(Vector16);
  switch (method) {
    case fused::Method::ll: return layout.ll_bytes;
    case fused::Method::one_shot: return 2 * layout.bulk_bytes / layout.ranks / 16 * 16;
    case fused::Method::two_shot: return layout.bulk_bytes - Bytes{16} * layout.ranks;
    case fused::Method::ll128: return 2 * layout.line_pairs / layout.ranks * data;
    case fused::Method::two_shot_ll128: return layout.line_pairs / layout.ranks * data * layout.ranks;
  }
  return 0;
}

std::size_t pieces_of(const CollectiveCall& call, DataType type, Bytes most) {
  return (call.count * bytes_of(type) + most - 1) / most;
}

}  // namespace

Bytes FusedCollective::landing_bytes(int ranks, const FusedOptions& options) {
  return layout_of(ranks, options).bytes();
}

// Private memory follows the memory for others.
Bytes FusedCollective::bytes_for(int ranks, const FusedOptions& options) {
  return landing_bytes(ranks, options) + sizeof(fused::FusedState) + ExposedTable::bytes();
}

void FusedCollective::clear_landing(Stream& stream, int ranks, const FusedOptions& options, Region memory) {
  clear(stream, memory.slice(0, layout_of(ranks, options).numbered()));
}

FusedCollective::FusedCollective(Platform& platform, Stream& stream, int rank, int ranks, const FusedOptions& options,
                                 Region memory)
    : rank_(rank),
      deadline_(options.deadline),
      layout_(layout_of(ranks, options)),
      landing_(memory.slice(0, layout_.bytes())),
      state_(memory.slice(landing_.bytes, sizeof(fused::FusedState))),
      notice_(
          platform.allocate(platform.nearest_host(stream.place().index), sizeof(block::Notice), Allocation::pinned)),
      launches_(platform.create_launch_cache(stream.place())),
      exposed_(std::make_shared<ExposedTable>(platform, stream, rank, ranks,
                                              memory.slice(landing_.bytes + state_.bytes, ExposedTable::bytes()))) {
  new (notice_.region().data) block::Notice();
  clear_landing(stream, ranks, options, landing_);
  clear(stream, state_);
}

void FusedCollective::connect(std::span<const Region> landings) { connect(landings, layout_); }

void FusedCollective::connect(std::span<const Region> landings, const FusedOptions& options) {
  connect(landings, layout_of(static_cast<int>(layout_.ranks), options));
}

void FusedCollective::connect(std::span<const Region> landings, const fused::LandingLayout& layout) {
  if (landings.size() != layout.ranks)
    throw Error(ErrorKind::invalid_input,
                std::to_string(landings.size()) + " landing memories for " + std::to_string(layout.ranks) + " ranks");
  for (const Region& region : landings)
    if (region.bytes < layout.bytes())
      throw Error(ErrorKind::invalid_input,
                  "a landing memory of " + format_bytes(region.bytes) + " instead of " + format_bytes(layout.bytes()));
  landings_.assign(landings.begin(), landings.end());
  layout_ = layout;
}

std::optional<std::string> FusedCollective::why_unavailable(const CollectiveCall& call, DataType) const {
  if (call.ranks != static_cast<int>(layout_.ranks)) return "the fused kernels are set up for another group";
  return fused::why_no_kernel(call);
}

fused::Method FusedCollective::default_method(const CollectiveCall& call, DataType type) const {
  const Bytes block = call.count * bytes_of(type);
  const fused::Method method = fused::default_method(call, block, ll128_);
  return method == fused::Method::ll && block > layout_.ll_bytes ? fused::Method::one_shot : method;
}

fused::FusedArguments FusedCollective::terms(Stream& stream, unsigned blocks) const {
  if (landings_.empty()) throw Error(ErrorKind::invalid_input, "fused collectives before connect()");
  fused::FusedArguments terms{};
  for (std::size_t rank = 0; rank < landings_.size(); ++rank)
    terms.landing[rank] = stream.reach(landings_[rank].slice(0, layout_.bytes()));
  terms.state = reinterpret_cast<fused::FusedState*>(stream.reach(state_));
  terms.notice = reinterpret_cast<block::Notice*>(stream.reach(notice_.region().slice(0, sizeof(block::Notice))));
  terms.exposed = exposed_->reached_from(stream);
  terms.layout = layout_;
  terms.rank = static_cast<std::uint32_t>(rank_);
  terms.deadline_ns = static_cast<std::uint64_t>(deadline_ * 1e9);
  terms.share = fused::most_blocks / blocks;
  terms.rest = fused::most_blocks - terms.share * blocks;
  return terms;
}

std::size_t FusedCollective::pieces(const CollectiveCall& call, DataType type, fused::Method method) const {
  return pieces_of(call, type, most_at_once(layout_, method));
}

std::size_t FusedCollective::pieces(const CollectiveCall& call, DataType type, fused::Method method,
                                    const FusedOptions& options) {
  return pieces_of(call, type, most_at_once(layout_of(call.ranks, options), method));
}

void FusedCollective::enqueue(const CollectiveCall& call, DataType type, ReduceOp op, ConstRegion input, Region output,
                              Stream& stream, const fused::KernelShape& shape, const on_stream::Description* as) {
  check_call(call);
  if (const auto why = why_unavailable(call, type)) throw Error(ErrorKind::unavailable, *why);
  fused::check_shape(call, shape);
  if (fused::is_ll128(shape.method) && !ll128_)
    throw Error(ErrorKind::unavailable, std::string(name(shape.method)) + " is for GPUs that NVLink joins");
  if (shape.method == fused::Method::ll && !fused::fits_into_packets(type, op))
    throw Error(ErrorKind::unavailable,
                "there is no " + std::string(name(op)) + " of " + std::string(name(type)) + " by LL");
  on_stream::Description description = as != nullptr ? *as : on_stream::describe(call, type, op);
  const Bytes most = most_at_once(layout_, shape.method);
  if (pieces(call, type, shape.method) > 1) description.cut = static_cast<std::uint32_t>(std::bit_width(most));
  fused::Buffers buffers{nullptr, nullptr, call.count * bytes_of(type), 0, description.word()};
  const Bytes in = fused::input_blocks(call) * buffers.block, out = fused::output_blocks(call) * buffers.block;
  if (buffers.block == 0) return;
  if (in != 0) buffers.input = stream.reach(input.slice(0, in));
  if (out != 0) {
    buffers.output = stream.reach(output.slice(0, out));
    buffers.slot = exposed_->slot_of(output.slice(0, out));
  }
  const fused::FusedArguments terms = this->terms(stream, shape.blocks);
  for (fused::FusedWork work : fused::works(call, type, op, buffers, shape.method, most)) {
    work.failed = on_stream::kept_word(notice());
    Kernel kernel{1, 1, {}, {}};
    if (stream.native() != nullptr)
      kernel.cuda = fused::cuda_launcher(launches_.get(), shape, terms, work);
    else
      kernel.body = [=](const ThreadContext&) { fused::run_on_host(shape, terms, work); };
    stream.launch(kernel);
  }
}

void FusedCollective::synchronize(Stream& stream, Deadline deadline) {
  try {
    stream.synchronize(deadline);
  } catch (const Error&) {
    if (const auto why = failure("")) throw Error(*why);
    throw;
  }
}

block::Notice& FusedCollective::notice() const { return *reinterpret_cast<block::Notice*>(notice_.region().data); }

std::optional<Error> FusedCollective::failure(const std::string& stopped, std::span<const int> in_job) const {
  const auto failed = on_stream::failure_in(notice());
  if (!failed) return {};
  return on_stream::error_of(*failed, rank_, in_job, deadline_, stopped);
}

void FusedCollective::stop() noexcept { on_stream::stop(notice()); }

}  // namespace waywiser
