#include "waywiser/collective/gpu/gpu_collectives.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/works.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/gpu_roads.hpp"
#include "waywiser/comm/group.hpp"
#include "waywiser/kernels/launch_trap.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

static_assert(ExposedMemory::slots == block::exposed_slots);
constexpr Seconds last_patience = 5;
constexpr std::size_t most_compared = 64;
constexpr Bytes most_by_kernels = Bytes{32} << 20, most_block_by_kernels = Bytes{16} << 20;

// What one rank tells the others.
struct Offer {
  SharedRegion landing, messages;
  std::array<char, 256> why_not{}, why_no_lines{};

  void refuse(const std::string& why) { why.copy(why_not.data(), why_not.size() - 1); }
};

// Of the first rank that has one.
std::string first_reason(const std::vector<Offer>& offers, std::array<char, 256> Offer::* why = &Offer::why_not) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    if ((offers[rank].*why)[0] != '\0') return "rank " + std::to_string(rank) + ": " + (offers[rank].*why).data();
  return {};
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

std::vector<Offer> exchange(Group& group, const Offer& mine) {
  std::vector<Offer> all(static_cast<std::size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (Offer& offer : all) {
    offer.why_not.back() = offer.why_no_lines.back() = '\0';
    offer.landing.gpu.back() = offer.messages.gpu.back() = '\0';
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

GpuCollectives::GpuCollectives(Group& group, Session& session, const Members& members, Place gpu,
                               std::shared_ptr<ExposedMemory> exposed)
    : session_(session),
      platform_(session.platform()),
      gpu_(gpu),
      stream_(platform_.open_stream(gpu)),
      exposed_(std::move(exposed)) {
  if (members.size() > 1) why_no_kernels_ = set_up(group, members);
  if (why_no_kernels_.empty()) {
    if (fused_) exposed_->watch(this);
  } else {
    fused_.reset();
    messages_.reset();
  }
  if (members.size() == 1) return;
  session_.watchdog().add(*this);
  watched_ = true;
}

// Two exchanges: what each rank offers, and whether each could use what the others offer.
std::string GpuCollectives::set_up(Group& group, const Members& members) {
  if (members.size() > static_cast<int>(block::max_ranks))
    return "fused kernels are for up to 8 ranks, the group has " + std::to_string(members.size());
  if (const std::string why = elsewhere(session_, members); !why.empty()) return why;
  Offer mine;
  mine.refuse(reason_of([&] {
    fused_ = std::make_unique<FusedCollective>(platform_, *stream_, members.rank, members.size(), FusedOptions{});
    nod_ = platform_.allocate(gpu_, sizeof(std::uint64_t), Allocation::gpu);
    messages_ = std::make_shared<StreamMessages>(platform_, *stream_, members.rank, members.size(), fused_->exposed());
    mine.landing = platform_.share(fused_->landing().region());
    mine.messages = platform_.share(messages_->landing().region());
  }));
  const std::vector<Offer> offers = exchange(group, mine);
  if (const std::string why = first_reason(offers); !why.empty()) return why;
  if (const std::string why = shared_gpu(offers); !why.empty()) return why;
  std::vector<SharedRegion> landings, messages;
  for (const Offer& offer : offers) {
    landings.push_back(offer.landing);
    messages.push_back(offer.messages);
  }
  mine.refuse(reason_of([&] {
    fused_->connect(open(landings, members.rank, fused_->landing().region()));
    messages_->connect(open(messages, members.rank, messages_->landing().region()));
  }));
  for (const Offer& offer : offers)
    if (const std::string why = why_no_lines(offer.landing.identity()); !why.empty() && mine.why_no_lines[0] == '\0')
      why.copy(mine.why_no_lines.data(), mine.why_no_lines.size() - 1);
  const std::vector<Offer> found = exchange(group, mine);
  why_no_lines_ = first_reason(found, &Offer::why_no_lines);
  if (fused_) fused_->set_lines(why_no_lines_.empty());
  if (messages_) messages_->set_lines(why_no_lines_.empty());
  return first_reason(found);
}

std::string GpuCollectives::why_no_lines(std::string_view peer) const {
  const std::optional<Place> place = platform_.find_gpu(peer);
  if (!place) return "how GPU " + std::string(peer) + " is joined is not known: it is hidden from this process";
  std::string why;
  const std::string problem =
      reason_of([&] { why = platform_.why_no_whole_lines(gpu_.index, place->index).value_or(""); });
  return problem.empty() ? why : problem;
}

std::vector<Region> GpuCollectives::open(const std::vector<SharedRegion>& landings, int rank, Region own) {
  std::vector<Region> regions;
  for (const SharedRegion& landing : landings) {
    if (static_cast<int>(regions.size()) == rank) {
      regions.push_back(own);
      continue;
    }
    opened_.push_back(platform_.open_shared(landing, gpu_));
    regions.push_back(opened_.back().region().slice(landing.offset, landing.bytes));
  }
  return regions;
}

// The others' kernels send to this rank until the last call has ended here.
GpuCollectives::~GpuCollectives() {
  if (fused_) exposed_->watch(nullptr);
  static_cast<void>(reason_of([&] { settle(); }));
  stop(*stream_);
  if (watched_) session_.watchdog().remove(*this);
  // A receiver says that it has taken a message when the sender may have gone on.
  static_cast<void>(reason_of([&] { session_.gpu_roads().keep(messages_); }));
}

bool GpuCollectives::can(const GpuWay& way, const CollectiveCall& call, DataType type) const {
  const bool barrier = call.operation == Collective::barrier;
  if (way.engine == Engine::nccl)
    return !barrier && call.ranks > 1 && why_no_nccl_.empty() && !NcclCommunicator::why_not(call, type);
  if (way.engine == Engine::host) return true;
  if (!fused::has_method(call.operation, way.method)) return false;
  if (fused::is_lines(way.method) && !why_no_lines_.empty()) return false;
  return (fused_ || call.ranks == 1) && (barrier || !fused::why_no_kernel(call));
}

// Where nothing was measured: kernels win up to there.
GpuWay GpuCollectives::default_way(const CollectiveCall& call, DataType type) const {
  const Bytes most =
      fused::has_method(call.operation, fused::Method::two_shot) ? most_by_kernels : most_block_by_kernels;
  const GpuWay kernels{Engine::kernels, {}, 0, 0}, nccl{Engine::nccl, {}, 0, 0};
  const bool large = call.count * bytes_of(type) > most;
  for (const GpuWay& way : {large ? nccl : kernels, large ? kernels : nccl})
    if (can(way, call, type)) {
      if (way.engine == Engine::nccl || !fused_ || call.operation == Collective::barrier) return way;
      return {Engine::kernels, fused_->default_method(call, type), 0, 0};
    }
  return {};
}

GpuWay GpuCollectives::choose(const CollectiveCall& call, DataType type) const {
  if (way_) return *way_;
  const GpuWay usual = default_way(call, type);
  if (call.operation == Collective::barrier || call.ranks == 1 || session_.options().chooser == nullptr) return usual;
  // A reduce is the half of an all_reduce by the same kernels: it is not measured apart.
  const Collective measured = call.operation == Collective::reduce ? Collective::all_reduce : call.operation;
  const CollectiveRow* row =
      session_.options().chooser->choose_collective(name(measured), "gpu", call.ranks, call.count * bytes_of(type));
  const auto planned = row == nullptr ? std::nullopt : parse_gpu_way(row->way);
  return planned && can(*planned, call, type) ? *planned : usual;
}

bool GpuCollectives::serves(Group& group, const Members& members, const Call& call, const CollectiveCall& wanted,
                            bool capturing) {
  if (choose(wanted, call.type).engine == Engine::nccl) {
    if (capturing && (!nccl_ || !nccl_->warm(wanted.operation)))
      throw Error(ErrorKind::unavailable, "the first " + std::string(name(wanted.operation)) +
                                              " by NCCL cannot be captured: call it once before");
    if (!std::exchange(nccl_tried_, true)) why_no_nccl_ = set_up_nccl(group, members, call);
  }
  const GpuWay way = choose(wanted, call.type);
  if (!can(way, wanted, call.type))
    throw Error(ErrorKind::unavailable, text(call) + " by " + text(way) + ": " +
                                            (way.engine == Engine::nccl ? why_no_nccl_
                                             : why_no_kernels_.empty()  ? why_no_lines_
                                                                        : why_no_kernels_));
  return way.engine != Engine::host;
}

std::string GpuCollectives::set_up_nccl(Group& group, const Members& members, const Call& call) {
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
  const std::vector<Offer> offers = exchange(group, mine);
  if (const std::string why = first_reason(offers); !why.empty()) return why;
  if (const std::string why = elsewhere(session_, members).empty() ? shared_gpu(offers) : ""; !why.empty()) return why;
  group.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
  mine.refuse(reason_of([&] {
    auto nccl = std::make_unique<NcclCommunicator>(id, members.rank, members.size(), stream_, waiter(call));
    nod_stream_ = platform_.open_stream(gpu_);
    nod_begins_ = platform_.create_event(gpu_);
    nod_ends_ = platform_.create_event(gpu_);
    const std::lock_guard lock(mutex_);
    nccl_ = std::move(nccl);
  }));
  std::string why = first_reason(exchange(group, mine));
  if (!why.empty() || fused_) return why;
  // By this one all ranks are connected: later ones need no turn of a rank that has gone on.
  CallComparison comparison(session_, std::make_shared<const Members>(members), call);
  session_.wait(comparison);
  session_.end();
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
  if (!last_) {
    auto event = platform_.create_event(gpu_);
    const std::lock_guard lock(mutex_);
    last_ = std::move(event);
  }
  stream.record(*last_);
  last_native_ = stream.native();
  std::erase_if(leaving_, [](const Leaving& each) { return each.end->done(); });
}

// On a stream of their own: the others may wait for ranks that wait for this one.
void GpuCollectives::came(unsigned slot, const ExposedMemory::Window& window) {
  fused_->exposed()->expose(slot, window.ranks, *platform_.open_stream(gpu_));
}

void GpuCollectives::went(unsigned slot, const ExposedMemory::Window& window) noexcept {
  static_cast<void>(reason_of([&] {
    if (last_ && !last_->done()) {
      stream_->wait(*last_);
      leaving_.push_back({platform_.create_event(gpu_), window.mapped});
      stream_->record(*leaving_.back().end);
    }
    fused_->exposed()->expose(slot, std::vector<Region>(window.ranks.size()), *platform_.open_stream(gpu_));
  }));
}

void GpuCollectives::enqueue(const Call& call, const CollectiveCall& wanted, ConstRegion input, Region output,
                             Stream& stream) {
  begin(stream);
  const GpuWay way = choose(wanted, call.type);
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

void GpuCollectives::enqueue_kernels(const GpuWay& way, const CollectiveCall& call, DataType type, ReduceOp op,
                                     ConstRegion input, Region output, Stream& stream) {
  fused::Shape shape = fused::default_shape(call, call.count * bytes_of(type), way.method);
  if (way.blocks != 0) shape = fused::Shape{way.method, way.blocks, way.threads};
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
  const Region word = nod_.region().slice(0, nod.count);
  const fused::Shape shape = fused::default_shape(nod, nod.count, fused::Method::packets);
  fused_->set_deadline(session_.timeout());
  fused_->enqueue(nod, DataType::uint8, ReduceOp::max, word, word, stream, shape, &description);
}

std::optional<Error> GpuCollectives::failure(const std::string& group) const {
  auto why = fused_ ? fused_->failure(group) : std::nullopt;
  return why || !messages_ ? why : messages_->failure(group);
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
