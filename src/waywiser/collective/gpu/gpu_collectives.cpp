#include "waywiser/collective/gpu/gpu_collectives.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/works.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/session/rank_exchange.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/kernels/launch_trap.hpp"

namespace waywiser {
namespace {

constexpr Seconds last_patience = 5;
constexpr std::size_t most_compared = 64;
constexpr Bytes most_by_kernels = Bytes{32} << 20, most_block_by_kernels = Bytes{16} << 20;

// What one rank tells the others.
struct Offer {
  SharedRegion landing;
  Bytes share = 0, most = 0;  // of the receive arena
  std::array<char, 256> why_not{}, why_no_lines{};
  bool kernels_on_shared_gpu = false;

  void refuse(const std::string& why) { why.copy(why_not.data(), why_not.size() - 1); }
};

// Of the first rank that has one.
std::string first_reason(const std::vector<Offer>& offers, std::array<char, 256> Offer::* why = &Offer::why_not) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    if ((offers[rank].*why)[0] != '\0') return "rank " + std::to_string(rank) + ": " + (offers[rank].*why).data();
  return {};
}

std::vector<SharedRegion> landings_of(const std::vector<Offer>& offers) {
  std::vector<SharedRegion> landings;
  std::ranges::transform(offers, std::back_inserter(landings), &Offer::landing);
  return landings;
}

std::string shared_gpu(const std::vector<Offer>& offers) {
  for (std::size_t a = 0; a < offers.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (offers[a].landing.identity() == offers[b].landing.identity())
        return "ranks " + std::to_string(b) + " and " + std::to_string(a) + " share GPU " +
               std::string(offers[a].landing.identity());
  return {};
}

std::string elsewhere(const Session& session, const Members& members) {
  const auto machine = [&](int rank) { return session.introduction(static_cast<int>(members.peer(rank))).machine_id; };
  for (int rank = 1; rank < members.size(); ++rank)
    if (machine(rank) != machine(0)) return "the group's ranks are on several machines";
  return {};
}

std::vector<Offer> offers_of_all(RankExchange& exchange, const Members& members, const Offer& mine) {
  std::vector<Offer> all(static_cast<std::size_t>(members.size()));
  exchange.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (Offer& offer : all) {
    offer.why_not.back() = offer.why_no_lines.back() = '\0';
    offer.landing.gpu.back() = '\0';
  }
  return all;
}

// What throws is a reason.
template <typename Function>
std::string reason_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

GpuCollectives::GpuCollectives(RankExchange& exchange, Session& session, const Members& members, Place gpu,
                               std::shared_ptr<ExposedMemory> exposed)
    : session_(session),
      platform_(session.platform()),
      gpu_(gpu),
      stream_(platform_.open_stream(gpu)),
      planned_(session.options().chooser.get(), members.size()),
      buffers_(session.peer_memory(), gpu, members.rank),
      prepared_(platform_, session.peer_memory(), buffers_, gpu, members.rank),
      exposed_(std::move(exposed)) {
  if (members.size() > 1) why_no_kernels_ = set_up(exchange, members);
  if (why_no_kernels_.empty()) {
    if (fused_) {
      buffers_.set_in_use();
      exposed_->watch(this);
    }
  } else {
    fused_.reset();
    messages_.reset();
    buffers_.give_back();
  }
  if (members.size() == 1) return;
  session_.watchdog().add(*this);
  watched_ = true;
}

// Three exchanges: what memory each rank has left, what each offers of it, and whether each can use what others offer.
std::string GpuCollectives::set_up(RankExchange& exchange, const Members& members) {
  if (members.size() > static_cast<int>(block::max_ranks))
    return "fused kernels are for up to 8 ranks, the group has " + std::to_string(members.size());
  if (const std::string why = elsewhere(session_, members); !why.empty()) return why;
  Offer mine;
  mine.kernels_on_shared_gpu = *session_.options().kernels_on_shared_gpu;
  mine.refuse(reason_of([&] {
    platform_.identity(gpu_.index).copy(mine.landing.gpu.data(), mine.landing.gpu.size() - 1);
    ReceiveArena& arena = session_.peer_memory().arena(gpu_);
    mine.share = arena.share_for(members.size());
    mine.most = arena.most();
  }));
  std::vector<Offer> offers = offers_of_all(exchange, members, mine);
  if (const std::string why = first_reason(offers); !why.empty()) return why;
  if (!std::ranges::all_of(offers, &Offer::kernels_on_shared_gpu))
    if (const std::string why = shared_gpu(offers); !why.empty()) return why;
  const auto memory = GroupMemory::within(members.size(), std::ranges::min(offers, {}, &Offer::share).share,
                                          std::ranges::min(offers, {}, &Offer::most).most);
  if (!memory)
    return "other groups have all of the " + std::to_string(ReceiveArena::limit >> 20) + " MiB set aside on the GPU";
  mine.refuse(reason_of([&] {
    mine.landing = buffers_.take(*memory);
    fused_ = std::make_unique<FusedCollective>(platform_, *stream_, members.rank, members.size(), memory->fused,
                                               buffers_.fused());
    messages_ = std::make_unique<StreamMessages>(platform_, *stream_, members.rank, memory->messages,
                                                 buffers_.messages(), fused_->exposed());
  }));
  offers = offers_of_all(exchange, members, mine);
  if (const std::string why = first_reason(offers); !why.empty()) return why;
  mine.refuse(reason_of([&] {
    buffers_.open(landings_of(offers));
    fused_->connect(buffers_.fused_of_all());
    messages_->connect(buffers_.messages_of_all());
  }));
  for (const Offer& offer : offers)
    if (const std::string why = why_no_lines(offer.landing.identity()); !why.empty() && mine.why_no_lines[0] == '\0')
      why.copy(mine.why_no_lines.data(), mine.why_no_lines.size() - 1);
  const std::vector<Offer> found = offers_of_all(exchange, members, mine);
  why_no_lines_ = first_reason(found, &Offer::why_no_lines);
  if (fused_) fused_->set_lines(why_no_lines_.empty());
  if (messages_) messages_->set_lines(why_no_lines_.empty());
  return first_reason(found);
}

void GpuCollectives::enlarge(RankExchange& exchange, const Members& members, const GpuAlgorithm& way,
                             const CollectiveCall& call, DataType type, const on_stream::Description& as) {
  const fused::Method method = way.method;
  if (!fused_ || call.count * bytes_of(type) <= most_in_slice || fused_->pieces(call, type, method) == 1) return;
  enlarge_until(exchange, members, as,
                [&](const FusedOptions& options) { return FusedCollective::pieces(call, type, method, options) == 1; });
}

void GpuCollectives::prepare(RankExchange& exchange, const Members& members, Bytes largest) {
  if (!fused_ || largest <= most_in_slice) return;
  const auto ranks = static_cast<Bytes>(members.size());
  const auto all_reduce = static_cast<std::uint32_t>(Collective::all_reduce);
  const on_stream::Description as{all_reduce, DataType::uint8, ReduceOp::max, -1, largest};
  enlarge_until(exchange, members, as, [&](const FusedOptions& options) {
    return options.bulk_bytes >= largest && 2 * options.bulk_bytes / ranks >= largest;
  });
}

// By all ranks together.
void GpuCollectives::enlarge_until(RankExchange& exchange, const Members& members, const on_stream::Description& as,
                                   const std::function<bool(const FusedOptions&)>& is_enough) {
  const auto larger = larger_memories();
  const auto wanted = static_cast<std::size_t>(std::ranges::find_if(larger, is_enough) - larger.begin());
  const std::size_t index = std::min(wanted, larger.size() - 1);
  if (index < enlarged_) return;
  enlarged_ = index + 1;
  // Ranks that are in another call are found out by their kernels, while this one waits for them.
  begin(*stream_);
  enqueue_nod(as, members.size(), *stream_);
  note_end(*stream_);
  static_cast<void>(enlarge(exchange, members, larger[index]));
}

// The reason of a rank that has no memory left: then all go on with what they have.
std::string GpuCollectives::enlarge(RankExchange& exchange, const Members& members, const FusedOptions& options) {
  Offer mine;
  Region own;
  mine.refuse(reason_of([&] {
    own = buffers_.take_apart(FusedCollective::landing_bytes(members.size(), options));
    FusedCollective::clear_landing(platform_, *platform_.open_stream(gpu_), members.size(), options, own);
    mine.landing = session_.peer_memory().share(own);
  }));
  const std::vector<Offer> offers = offers_of_all(exchange, members, mine);
  std::string why = first_reason(offers);
  std::vector<Region> all;
  if (why.empty()) {
    mine.refuse(reason_of([&] { all = buffers_.open_apart(landings_of(offers), own); }));
    why = first_reason(offers_of_all(exchange, members, mine));
  }
  if (why.empty())
    fused_->connect(all, options);
  else if (own.bytes != 0)
    buffers_.give_back_apart(own);
  return why;
}

std::string GpuCollectives::why_no_lines(std::string_view peer) const {
  const std::optional<Place> place = platform_.find_gpu(peer);
  if (!place) return "how GPU " + std::string(peer) + " is joined is not known: it is hidden from this process";
  std::string why;
  const std::string problem =
      reason_of([&] { why = platform_.why_no_whole_lines(gpu_.index, place->index).value_or(""); });
  return problem.empty() ? why : problem;
}

GpuCollectives::~GpuCollectives() {
  if (fused_) exposed_->watch(nullptr);
  const std::string problem = reason_of([&] { settle(); });
  stop(*stream_);
  if (watched_) session_.watchdog().remove(*this);
  prepared_.let_go();
  if (problem.empty() && !thrown_ && session_.failure().empty()) buffers_.leave(*platform_.open_stream(gpu_));
}

void GpuCollectives::let_go() noexcept {
  let_go_ = true;
  prepared_.let_go();
  buffers_.let_go();
}

bool GpuCollectives::can(const GpuAlgorithm& way, const CollectiveCall& call, DataType type) const {
  const bool barrier = call.operation == Collective::barrier;
  if (way.engine == Engine::nccl)
    return !barrier && call.ranks > 1 && why_no_nccl_.empty() && !NcclCommunicator::why_not(call, type);
  if (way.engine == Engine::host) return true;
  if (!fused::has_method(call.operation, way.method)) return false;
  if (fused::is_lines(way.method) && !why_no_lines_.empty()) return false;
  return (fused_ || call.ranks == 1) && (barrier || !fused::why_no_kernel(call));
}

// Where nothing was measured: kernels win up to there.
GpuAlgorithm GpuCollectives::default_way(const CollectiveCall& call, DataType type) const {
  const Bytes most =
      fused::has_method(call.operation, fused::Method::two_shot) ? most_by_kernels : most_block_by_kernels;
  const GpuAlgorithm kernels{Engine::kernels, {}, 0, 0}, nccl{Engine::nccl, {}, 0, 0};
  const bool large = call.count * bytes_of(type) > most;
  for (const GpuAlgorithm& way : {large ? nccl : kernels, large ? kernels : nccl})
    if (can(way, call, type)) {
      if (way.engine == Engine::nccl || !fused_ || call.operation == Collective::barrier) return way;
      return {Engine::kernels, fused_->default_method(call, type), 0, 0};
    }
  return {};
}

GpuAlgorithm GpuCollectives::choose(const CollectiveCall& call, DataType type) const {
  if (way_) return *way_;
  if (call.operation != Collective::barrier && call.ranks > 1)
    if (const GpuAlgorithm* planned = planned_.find(call.operation, call.count * bytes_of(type));
        planned != nullptr && can(*planned, call, type))
      return *planned;
  return default_way(call, type);
}

std::optional<GpuAlgorithm> GpuCollectives::way_for(RankExchange& exchange, const Members& members, const Call& call,
                                                    const CollectiveCall& wanted, bool capturing) {
  GpuAlgorithm way = choose(wanted, call.type);
  if (way.engine == Engine::nccl) {
    if (capturing && (!nccl_ || !nccl_->warm(wanted.operation)))
      throw Error(ErrorKind::unavailable, "the first " + std::string(name(wanted.operation)) +
                                              " by NCCL cannot be captured: call it once before");
    if (!std::exchange(nccl_tried_, true)) {
      why_no_nccl_ = set_up_nccl(exchange, members, call);
      way = choose(wanted, call.type);
    }
  }
  if (!can(way, wanted, call.type))
    throw Error(ErrorKind::unavailable, text(call) + " by " + text(way) + ": " +
                                            (way.engine == Engine::nccl ? why_no_nccl_
                                             : why_no_kernels_.empty()  ? why_no_lines_
                                                                        : why_no_kernels_));
  if (way.engine == Engine::kernels && !capturing)
    enlarge(exchange, members, way, wanted, call.type, on_stream::describe(wanted, call.type, call.op));
  return way.engine == Engine::host ? std::nullopt : std::optional(way);
}

std::string GpuCollectives::set_up_nccl(RankExchange& exchange, const Members& members, const Call& call) {
  Offer mine;
  NcclUniqueId id;
  mine.refuse(reason_of([&] {
    if (platform_.backend() != "cuda")
      throw Error(ErrorKind::unavailable,
                  "NCCL is for CUDA GPUs, these are of the " + std::string(platform_.backend()) + " back end");
    const NcclLibrary& nccl = nccl_library();
    if (!nccl.why_not().empty()) throw Error(ErrorKind::unavailable, nccl.why_not());
    if (const auto why = open_network_for_nccl(session_.within_a_machine(), session_.encrypts()); !why.empty())
      throw Error(ErrorKind::unavailable, why);
    if (members.rank == 0) nccl.check(nccl.functions().get_unique_id(&id), "ncclGetUniqueId");
    platform_.identity(gpu_.index).copy(mine.landing.gpu.data(), mine.landing.gpu.size() - 1);
  }));
  const std::vector<Offer> offers = offers_of_all(exchange, members, mine);
  if (const std::string why = first_reason(offers); !why.empty()) return why;
  if (const std::string why = elsewhere(session_, members).empty() ? shared_gpu(offers) : ""; !why.empty()) return why;
  exchange.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
  mine.refuse(reason_of([&] {
    auto nccl = std::make_unique<NcclCommunicator>(id, members.rank, members.size(), stream_, waiter(call));
    nod_stream_ = platform_.open_stream(gpu_);
    nod_begins_ = platform_.create_event(gpu_);
    nod_ends_ = platform_.create_event(gpu_);
    const std::lock_guard lock(mutex_);
    nccl_ = std::move(nccl);
  }));
  std::string why = first_reason(offers_of_all(exchange, members, mine));
  if (!why.empty() || fused_) return why;
  // By this one all ranks are connected: later ones need no turn of a rank that has gone on.
  CallComparison comparison(session_, std::make_shared<const Members>(members), call);
  session_.wait(comparison);
  return {};
}

NcclCommunicator::Waiter GpuCollectives::waiter(const Call& call) {
  return [this, call](const std::function<bool()>& done) {
    session_.wait(call, [&done] { return done(); }, [] { return std::string("NCCL waits for other ranks"); });
  };
}

// Calls on different streams come one after another; those in graphs are the caller's to keep apart.
void GpuCollectives::begin(Stream& stream) {
  if (stream.place() != gpu_)
    throw Error(ErrorKind::invalid_input,
                "a stream of " + text(stream.place()) + ": the collectives of this group use " + text(gpu_));
  check();
  if (!last_) return;
  const bool same = stream.native() != nullptr && stream.native() == last_native_;
  if (!same && !stream.capturing()) stream.wait(*last_);
}

void GpuCollectives::end(Stream& stream) {
  if (stream.capturing() || &stream == stream_.get()) return;
  note_end(stream);
  std::erase_if(leaving_, [](const Leaving& each) { return each.end->done(); });
}

void GpuCollectives::note_end(Stream& stream) {
  if (!last_) {
    auto event = platform_.create_event(gpu_);
    const std::lock_guard lock(mutex_);
    last_ = std::move(event);
  }
  stream.record(*last_);
  last_native_ = stream.native();
}

// On a stream of their own: the others may wait for ranks that wait for this one.
void GpuCollectives::came(unsigned slot, const ExposedMemory::Window& window) {
  fused_->exposed()->expose(slot, window.ranks, *platform_.open_stream(gpu_));
}

void GpuCollectives::went(unsigned slot, const ExposedMemory::Window& window) noexcept {
  if (let_go_) return;
  static_cast<void>(reason_of([&] {
    if (last_ && !last_->done()) {
      stream_->wait(*last_);
      leaving_.push_back({platform_.create_event(gpu_), window.mapped});
      stream_->record(*leaving_.back().end);
    }
    fused_->exposed()->expose(slot, std::vector<Region>(window.ranks.size()), *platform_.open_stream(gpu_));
  }));
}

void GpuCollectives::enqueue(const Call& call, const GpuAlgorithm& way, const CollectiveCall& wanted, ConstRegion input,
                             Region output, Stream& stream) {
  begin(stream);
  if (wanted.operation == Collective::barrier) {
    enqueue_nod(on_stream::describe(wanted, call.type, call.op), wanted.ranks, stream);
  } else if (wanted.ranks == 1) {
    if (output.data != input.data) stream.copy(output, input);
  } else if (way.engine == Engine::nccl) {
    enqueue_nccl(call, wanted, input, output, stream);
  } else {
    enqueue_kernels(way, wanted, call.type, call.op, input, output, stream);
  }
  end(stream);
}

// The ranks compare their calls while NCCL is under way, and are through with both before anything comes behind it.
void GpuCollectives::enqueue_nccl(const Call& call, const CollectiveCall& wanted, ConstRegion input, Region output,
                                  Stream& stream) {
  const bool compare = fused_ && wanted.ranks > 1;
  if (compare) {
    stream.record(*nod_begins_);
    nod_stream_->wait(*nod_begins_);
    enqueue_nod(on_stream::describe(wanted, call.type, call.op), wanted.ranks, *nod_stream_);
    nod_stream_->record(*nod_ends_);
  }
  nccl_->enqueue(wanted, call.type, call.op, input, output, stream, waiter(call));
  if (compare) stream.wait(*nod_ends_);
}

// A rank does not run away from the others by more than so many calls.
void GpuCollectives::compare_by_host(const std::shared_ptr<const Members>& members, const Call& call) {
  session_.wait(
      call, [this] { return !is_comparing() || comparing_.size() < most_compared; },
      [this] { return comparing_.front()->progress_text(); });
  comparing_.push_back(std::make_shared<CallComparison>(session_, members, call));
  session_.start(comparing_.back());
}

bool GpuCollectives::is_comparing() {
  std::erase_if(comparing_, [](const auto& each) { return !each->under_way; });
  return !comparing_.empty();
}

void GpuCollectives::enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream) {
  begin(stream);
  messages_->enqueue(give, to, take, from, stream, session_.timeout());
  end(stream);
}

void GpuCollectives::enqueue_messages(std::span<const PeerMessage> messages, Stream& stream) {
  begin(stream);
  messages_->enqueue(messages, stream, session_.timeout());
  end(stream);
}

void GpuCollectives::enqueue_prepared(DeviceExecution& execution, Stream& stream) {
  begin(stream);
  execution.enqueue(stream, session_.timeout());
  end(stream);
  if (&stream == stream_.get()) note_end(stream);
}

void GpuCollectives::end_prepared() noexcept {
  static_cast<void>(reason_of([&] {
    if (last_) last_->synchronize(Deadline::in(session_.timeout() + last_patience));
  }));
}

void GpuCollectives::enqueue_kernels(const GpuAlgorithm& way, const CollectiveCall& call, DataType type, ReduceOp op,
                                     ConstRegion input, Region output, Stream& stream) {
  fused::KernelShape shape = fused::default_shape(call, call.count * bytes_of(type), way.method);
  if (way.blocks != 0) shape = fused::KernelShape{way.method, way.blocks, way.threads};
  fused_->set_deadline(session_.timeout());
  fused_->enqueue(call, type, op, input, output, stream, shape);
}

// Everyone hears from everyone, and that they are about to do the same. Without kernels nobody does.
void GpuCollectives::enqueue_nod(const on_stream::Description& description, int ranks, Stream& stream) {
  if (!fused_) return;
  CollectiveCall nod;
  nod.operation = Collective::all_reduce;
  nod.ranks = ranks;
  nod.count = sizeof(std::uint64_t);
  const Region word = buffers_.own_word();
  const fused::KernelShape shape = fused::default_shape(nod, nod.count, fused::Method::packets);
  fused_->set_deadline(session_.timeout());
  fused_->enqueue(nod, DataType::uint8, ReduceOp::max, word, word, stream, shape, &description);
}

std::optional<Error> GpuCollectives::failure(const std::string& group) const {
  auto why = fused_ ? fused_->failure(group) : std::nullopt;
  if (!why && messages_) why = messages_->failure(group);
  return why ? why : prepared_.failure(group);
}

bool GpuCollectives::is_gone() const {
  const std::lock_guard lock(mutex_);
  return last_ == nullptr || !reason_of([&] { static_cast<void>(last_->done()); }).empty();
}

void GpuCollectives::check() {
  if (const auto why = failure(session_.failure())) {
    thrown_ = true;
    throw Error(*why);
  }
  if (nccl_) nccl_->check();
}

// What waits on the GPU ends by itself at the timeout.
void GpuCollectives::settle() {
  std::string problem;
  if (last_) problem = reason_of([&] { last_->synchronize(Deadline::in(session_.timeout() + last_patience)); });
  if (thrown_) return;
  check();
  if (!problem.empty()) throw Error(ErrorKind::device, "operations on " + text(gpu_) + " have not ended: " + problem);
}

void GpuCollectives::stop(Stream& stream) noexcept {
  stop();
  static_cast<void>(reason_of([&] { stream.synchronize(Deadline::in(last_patience)); }));
}

// NCCL's kernels would end as if they had done their work: those of a group that has failed must take all with them.
void GpuCollectives::stop() noexcept {
  if (fused_) fused_->stop();
  if (messages_) messages_->stop();
  prepared_.stop();
  const std::lock_guard lock(mutex_);
  if (!nccl_) return;
  bool trapped = false;
  static_cast<void>(reason_of([&] {
    trapped = last_ && !last_->done();
    if (trapped) launch_trap(*stream_);
  }));
  trapped ? nccl_->abandon() : nccl_->abort();
}

}  // namespace waywiser
