#include "waywiser/collective/gpu/kernel_domain.hpp"

#include <algorithm>

#include "waywiser/comm/session/kept_failure.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/kernels/block/ranks.hpp"

namespace waywiser {
namespace {

// Ranks of one machine get the same number.
std::vector<int> machine_numbers(const Session& session, const Members& members) {
  const auto machine = [&](int rank) -> const std::string& {
    return session.introduction(static_cast<int>(members.peer(rank))).machine_id;
  };
  std::vector<int> numbers;
  for (int rank = 0; rank < members.size(); ++rank) {
    int first = 0;
    while (machine(first) != machine(rank)) ++first;
    numbers.push_back(first);
  }
  return numbers;
}

}  // namespace

std::vector<std::vector<int>> kernel_domains(const std::vector<int>& machine_of) {
  std::vector<std::vector<int>> parts;
  for (std::size_t first = 0; first < machine_of.size(); ++first) {
    if (std::find(machine_of.begin(), machine_of.begin() + static_cast<std::ptrdiff_t>(first), machine_of[first]) !=
        machine_of.begin() + static_cast<std::ptrdiff_t>(first))
      continue;
    std::vector<int> machine;
    for (std::size_t rank = first; rank < machine_of.size(); ++rank)
      if (machine_of[rank] == machine_of[first]) machine.push_back(static_cast<int>(rank));
    const std::size_t count = (machine.size() + block::max_ranks - 1) / block::max_ranks;
    for (std::size_t part = 0; part < count; ++part)
      parts.emplace_back(machine.begin() + static_cast<std::ptrdiff_t>(part * machine.size() / count),
                         machine.begin() + static_cast<std::ptrdiff_t>((part + 1) * machine.size() / count));
  }
  return parts;
}

KernelDomain::KernelDomain(RankExchange& exchange, Session& session, const Members& members, Place gpu, Stream& stream)
    : session_(session),
      platform_(session.gpus().platform()),
      gpu_(gpu),
      stream_(stream),
      group_rank_(members.rank),
      group_size_(members.size()),
      machine_of_(machine_numbers(session, members)),
      all_(kernel_domains(machine_of_)),
      index_(part_of(members.rank)),
      rank_(place_of(members.rank)),
      planned_(session.options().chooser.get()),
      buffers_(session.gpus().peer_memory(), gpu, rank_),
      peers_(ranks().size()) {
  for (const int rank : ranks()) in_job_.push_back(static_cast<int>(members.peer(rank)));
  if (group_size_ == 1) return;
  why_not_whole_ = general_reason();
  if (std::ranges::any_of(all_, [](const auto& part) { return part.size() > 1; })) set_up(exchange);
}

bool KernelDomain::on_one_machine() const {
  return std::ranges::all_of(machine_of_, [](int machine) { return machine == 0; });
}

std::string KernelDomain::general_reason() const {
  if (all_.size() == 1) return {};
  if (!on_one_machine()) return "the group's ranks are on several machines";
  return "fused kernels are for up to 8 ranks, the group has " + std::to_string(group_size_);
}

int KernelDomain::part_of(int rank) const {
  const auto part = std::ranges::find_if(all_, [&](const auto& each) { return std::ranges::count(each, rank) != 0; });
  return static_cast<int>(part - all_.begin());
}

// The index within this rank's part; -1: it is in another part.
int KernelDomain::place_of(int rank) const {
  const auto place = std::ranges::find(ranks(), rank);
  return place == ranks().end() ? -1 : static_cast<int>(place - ranks().begin());
}

const RankOffer& KernelDomain::of(const std::vector<RankOffer>& offers, int place) const {
  return offers[static_cast<std::size_t>(ranks()[static_cast<std::size_t>(place)])];
}

RankOffer KernelDomain::first_offer() const {
  RankOffer mine;
  mine.kernels_on_shared_gpu = *session_.options().kernels_on_shared_gpu;
  mine.max_ctas = *session_.options().max_ctas;
  mine.keeps_context = session_.gpus().kept_failure(gpu_) != nullptr;
  mine.refuse(reason_of([&] {
    platform_.identity(gpu_.index).copy(mine.landing.gpu.data(), mine.landing.gpu.size() - 1);
    mine.multiprocessors = platform_.multiprocessors(gpu_.index);
    ReceiveArena& arena = session_.gpus().peer_memory().arena(gpu_);
    mine.share = arena.share_for(size());
    mine.most = arena.most();
  }));
  return mine;
}

// All ranks take part in all exchanges, even after an error.
void KernelDomain::set_up(RankExchange& exchange) {
  RankOffer mine = first_offer();
  take_memory(offers_of_all(exchange, group_size_, mine), mine);
  open(offers_of_all(exchange, group_size_, mine), mine);
  conclude(offers_of_all(exchange, group_size_, mine));
}

// Whether ranks of this machine that have not refused, in any part, share a GPU.
bool KernelDomain::shares_its_gpu(const std::vector<RankOffer>& offers) {
  std::vector<int> here;
  bool allowed = true;
  for (int rank = 0; rank < group_size_; ++rank) {
    const RankOffer& offer = offers[static_cast<std::size_t>(rank)];
    if (machine_of_[static_cast<std::size_t>(rank)] != machine_of_[static_cast<std::size_t>(group_rank_)]) continue;
    allowed = allowed && offer.kernels_on_shared_gpu;
    if (!offer.refuses()) here.push_back(rank);
  }
  if (allowed) return false;
  why_for_all_ = shared_gpu(offers, here);
  const auto mine = offers[static_cast<std::size_t>(group_rank_)].landing.identity();
  return std::ranges::any_of(here, [&](int rank) {
    return rank != group_rank_ && offers[static_cast<std::size_t>(rank)].landing.identity() == mine;
  });
}

// Takes as much as all ranks of the part that have not refused can take.
void KernelDomain::take_memory(const std::vector<RankOffer>& offers, RankOffer& mine) {
  if (mine.refuses() || size() == 1) return;
  for (const int rank : ranks()) ranks_on_a_gpu_ = std::max(ranks_on_a_gpu_, ranks_on_gpu_of(offers, rank));
  if (shares_its_gpu(offers)) return mine.refuse(why_for_all_);
  Bytes share = mine.share, most = mine.most;
  for (int place = 0; place < size(); ++place) {
    const RankOffer& offer = of(offers, place);
    if (offer.refuses()) continue;
    share = std::min(share, offer.share);
    most = std::min(most, offer.most);
  }
  const auto memory = GroupMemory::within(size(), share, most);
  if (!memory) {
    why_for_all_ = "other groups have all of the " + std::to_string(ReceiveArena::limit >> 20) +
                   " MiB set aside on the GPU, enough for 9 groups of 8 ranks or 15 of 2: drop one";
    return mine.refuse(why_for_all_);
  }
  mine.refuse(reason_of([&] {
    mine.landing = buffers_.take(*memory);
    fused_ = std::make_unique<FusedCollective>(platform_, stream_, rank_, size(), memory->fused, buffers_.fused());
    messages_ = std::make_unique<StreamMessages>(platform_, stream_, rank_, memory->messages, buffers_.messages(),
                                                 fused_->exposed(), planned_, ranks_on_a_gpu_);
    if (const KeptFailure* kept = session_.gpus().kept_failure(gpu_)) {
      fused_->keep_context(kept->on_gpu());
      messages_->keep_context(kept->on_gpu());
    }
  }));
}

void KernelDomain::open(const std::vector<RankOffer>& offers, RankOffer& mine) {
  for (int place = 0; place < size() && messages_ && !mine.refuses(); ++place) {
    const RankOffer& offer = of(offers, place);
    if (place == rank_ || offer.refuses()) continue;
    const std::string why = reason_of([&] { buffers_.open(static_cast<std::size_t>(place), offer.landing); });
    if (why.empty()) mine.reached |= 1u << place;
    if (!why.empty() && why_no_pairs_.empty()) why_no_pairs_ = why;
    const std::string no_ll128 = ll128_reason(offer.landing.identity());
    if (!no_ll128.empty() && mine.why_no_ll128[0] == '\0')
      no_ll128.copy(mine.why_no_ll128.data(), mine.why_no_ll128.size() - 1);
  }
  if (!mine.refuses()) mine.refuse(why_no_pairs_);
}

bool KernelDomain::serves_collectives(const std::vector<RankOffer>& offers, const std::vector<int>& part) const {
  for (const int rank : part)
    for (std::size_t place = 0; place < part.size(); ++place)
      if (part[place] != rank && (offers[static_cast<std::size_t>(rank)].reached >> place & 1) == 0) return false;
  return true;
}

void KernelDomain::conclude(const std::vector<RankOffer>& offers) {
  multiprocessors_ = of(offers, 0).multiprocessors;
  max_ctas_ = ~0u;
  for (int place = 0; place < size(); ++place) {
    multiprocessors_ = std::min<int>(multiprocessors_, of(offers, place).multiprocessors);
    if (const int most = of(offers, place).max_ctas; most > 0)
      max_ctas_ = std::min(max_ctas_, static_cast<unsigned>(most));
    keeps_context_ = keeps_context_ || of(offers, place).keeps_context;
  }
  multiprocessors_ = std::max(multiprocessors_ / ranks_on_a_gpu_, 1);
  has_collectives_ = size() > 1 && serves_collectives(offers, ranks());
  serves_all_parts_ = std::ranges::all_of(all_, [&](const auto& part) { return serves_collectives(offers, part); });
  why_no_pairs_ = why_for_all_.empty() ? first_reason(offers, ranks()) : why_for_all_;
  if (why_not_whole_.empty() && !has_collectives_) why_not_whole_ = why_no_pairs_;
  why_no_ll128_ = first_reason(offers, ranks(), &RankOffer::why_no_ll128);
  for (int place = 0; place < size(); ++place) {
    const bool both = (of(offers, rank_).reached >> place & 1) != 0 && (of(offers, place).reached >> rank_ & 1) != 0;
    peers_[static_cast<std::size_t>(place)] = both;
    if (!both && place != rank_) buffers_.close(static_cast<std::size_t>(place));
  }
  if (std::ranges::none_of(peers_, [](bool peer) { return peer; })) {
    messages_.reset();
    fused_.reset();
    return buffers_.give_back();
  }
  buffers_.set_in_use();
  messages_->set_ll128(why_no_ll128_.empty());
  messages_->connect(buffers_.messages_of_all());
  if (!has_collectives_) return;
  fused_->set_ll128(why_no_ll128_.empty());
  fused_->connect(buffers_.fused_of_all());
}

std::string KernelDomain::ll128_reason(std::string_view peer) const {
  const std::optional<Place> place = platform_.find_gpu(peer);
  if (!place) return "how GPU " + std::string(peer) + " is joined is not known: it is hidden from this process";
  std::string why;
  const auto ask = [&] { why = platform_.why_no_whole_lines(gpu_.index, place->index).value_or(""); };
  const std::string problem = reason_of(ask);
  return problem.empty() ? why : problem;
}

bool KernelDomain::reaches(int rank) const {
  const int place = place_of(rank);
  return place >= 0 && peers_[static_cast<std::size_t>(place)];
}

std::string KernelDomain::why_not(int rank) const {
  if (reaches(rank)) return {};
  const auto machine = [this](int each) { return machine_of_[static_cast<std::size_t>(each)]; };
  if (machine(rank) != machine(group_rank_)) return "rank " + std::to_string(rank) + " is on another machine";
  if (place_of(rank) < 0)
    return "kernels serve parts of up to 8 ranks, and rank " + std::to_string(rank) + " is in another one";
  return why_no_pairs_;
}

void KernelDomain::enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream,
                                   Seconds deadline) {
  messages_->enqueue(give, place_of(to), take, place_of(from), stream, deadline);
}

void KernelDomain::enqueue_messages(std::vector<PeerMessage> messages, const OwnBlock& own, Stream& stream,
                                    Seconds deadline) {
  for (PeerMessage& each : messages) each.rank = place_of(each.rank);
  messages_->enqueue(messages, own, stream, deadline);
}

std::string KernelDomain::enlarge(RankExchange& exchange, const FusedOptions& options) {
  return share_apart(
      exchange, FusedCollective::landing_bytes(size(), options),
      [&](Region own) { FusedCollective::clear_landing(*platform_.open_stream(gpu_), size(), options, own); },
      [&](const std::vector<Region>& all) { fused_->connect(all, options); });
}

std::string KernelDomain::share_apart(RankExchange& exchange, Bytes bytes, const std::function<void(Region own)>& begin,
                                      const std::function<void(std::vector<Region> all)>& use) {
  RankOffer mine;
  Region own;
  mine.refuse(reason_of([&] {
    own = buffers_.take_apart(bytes);
    begin(own);
    mine.landing = session_.gpus().peer_memory().share(own);
  }));
  const std::vector<RankOffer> offers = offers_of_all(exchange, group_size_, mine);
  std::string why = first_reason(offers, ranks());
  std::vector<Region> all;
  if (why.empty()) {
    std::vector<SharedRegion> landings;
    for (const RankOffer& offer : offers) landings.push_back(offer.landing);
    mine.refuse(reason_of([&] { all = buffers_.open_apart(landings, own); }));
    why = first_reason(offers_of_all(exchange, group_size_, mine), ranks());
  }
  if (why.empty())
    use(std::move(all));
  else if (own.bytes != 0)
    buffers_.give_back(own);
  return why;
}

// On a stream of its own: other streams may wait for ranks that wait for this one.
void KernelDomain::expose(unsigned slot, const ExposedMemory::Window& window, bool gone) {
  std::vector<Region> mine(ranks().size());
  for (std::size_t place = 0; place < mine.size() && !gone; ++place)
    mine[place] = window.ranks[static_cast<std::size_t>(ranks()[place])];
  fused_->exposed()->expose(slot, mine, *platform_.open_stream(gpu_));
}

std::optional<Error> KernelDomain::failure(const std::string& stopped) const {
  auto why = fused_ ? fused_->failure(stopped, in_job_) : std::nullopt;
  return why || !messages_ ? why : messages_->failure(stopped, in_job_);
}

void KernelDomain::stop() noexcept {
  if (fused_) fused_->stop();
  if (messages_) messages_->stop();
}

}  // namespace waywiser
