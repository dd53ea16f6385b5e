#include "waywiser/group/window_state.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/group/failure_at_all.hpp"

namespace waywiser {
namespace {

using Reason = std::array<char, 256>;

// What each rank tells the others: first its memory, then that it has opened theirs.
struct WindowOffer {
  SharedRegion memory;
  std::uint32_t slots_in_use = 0;  // bits
  bool aligned = false;            // for kernels that store 16 bytes at once
  bool symmetric = false;
  ErrorKind kind = ErrorKind::unavailable;
  Reason why_not{};

  template <typename Function>
  void attempt(Function function) {
    try {
      function();
    } catch (const Error& error) {
      kind = error.kind();
      std::string(error.what()).copy(why_not.data(), why_not.size() - 1);
    }
  }
};

// Throws at all ranks if one of them has a reason.
std::vector<WindowOffer> offers_of_all(GroupCore& core, const WindowOffer& mine) {
  std::vector<WindowOffer> all(static_cast<std::size_t>(core.size()));
  core.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    all[rank].why_not.back() = all[rank].memory.gpu.back() = '\0';
    if (all[rank].why_not[0] != '\0')
      throw_known_to_all(core, Error(all[rank].kind, "rank " + std::to_string(rank) + ": " + all[rank].why_not.data()));
  }
  return all;
}

// A slot that no rank uses; 0: there is none, or kernels cannot store there.
unsigned free_slot(const std::vector<WindowOffer>& offers) {
  std::uint32_t in_use = 1;
  for (const WindowOffer& each : offers) {
    in_use |= each.slots_in_use;
    if (!each.aligned) return 0;
  }
  const auto slot = static_cast<unsigned>(std::countr_one(in_use));
  return slot <= ExposedMemory::slots ? slot : 0;
}

// What is wrong with symmetric windows of these ranks, if anything; `slot`: the one that is free.
std::optional<Error> wrong_symmetric(const std::vector<WindowOffer>& offers, unsigned slot) {
  const WindowOffer& first = offers.front();
  for (std::size_t rank = 1; rank < offers.size(); ++rank) {
    const WindowOffer& each = offers[rank];
    const std::string who = "rank " + std::to_string(rank);
    if (each.symmetric != first.symmetric)
      return Error(ErrorKind::invalid_input,
                   "expose: symmetric is for all ranks: only one of rank 0 and " + who + " has given it");
    if (first.symmetric && each.memory.bytes != first.memory.bytes)
      return Error(ErrorKind::invalid_input, "expose: symmetric windows are equally long: rank 0 exposes " +
                                                 std::to_string(first.memory.bytes) + " bytes, " + who + " " +
                                                 std::to_string(each.memory.bytes));
  }
  if (!first.symmetric || slot != 0) return {};
  if (!std::ranges::all_of(offers, &WindowOffer::aligned))
    return Error(ErrorKind::invalid_input, "expose: a symmetric window begins at a multiple of 16 bytes at all ranks");
  return Error(ErrorKind::unavailable, "expose: a group has at most " + std::to_string(ExposedMemory::slots) +
                                           " open windows of GPU memory if one is to be symmetric");
}

void check_one_machine(const Session& session, const Members& members) {
  for (const int world : members.world)
    if (!session.same_machine(world))
      throw Error(ErrorKind::unavailable, "GPU memory can be exposed to ranks of one machine only: rank " +
                                              std::to_string(world) + " is on " + session.introduction(world).host);
}

}  // namespace

Window::State::~State() {
  if (slot_ != 0 && !session().is_forked()) shown_in_->remove(slot_);
}

std::unique_ptr<Window::State> Window::State::of_host(std::shared_ptr<GroupCore> core, Region memory) {
  auto state = std::make_unique<State>(std::move(core), memory);
  GroupCore& group = *state->core;
  state->on_hosts = std::make_unique<HostWindow>(group.session(), group.members(), memory, group);
  for (int rank = 0; rank < group.size(); ++rank) state->bytes.push_back(state->on_hosts->bytes_of(rank));
  return state;
}

std::unique_ptr<Window::State> Window::State::of_gpu(std::shared_ptr<GroupCore> core, Region local, bool symmetric,
                                                     const std::shared_ptr<ExposedMemory>& shown_in) {
  Session& session = core->session();
  check_one_machine(session, core->members());
  const Call call = core->next_call(CallKind::expose, {local, DataType::uint8});
  const InCall in_call(session, call);
  WindowOffer mine;
  mine.slots_in_use = shown_in->in_use();
  mine.aligned = reinterpret_cast<std::uintptr_t>(local.data) % 16 == 0;
  mine.symmetric = symmetric;
  mine.attempt([&] {
    if (local.bytes != 0) mine.memory = session.gpus().peer_memory().share(local);
  });
  const std::vector<WindowOffer> offers = offers_of_all(*core, mine);
  if (const auto wrong = wrong_symmetric(offers, free_slot(offers))) throw_known_to_all(*core, *wrong);
  auto state = std::make_unique<State>(std::move(core), local);
  std::vector<SharedRegion> memories;
  for (const WindowOffer& each : offers) {
    memories.push_back(each.memory);
    state->bytes.push_back(each.memory.bytes);
  }
  mine.attempt([&] { state->on_gpus = std::make_shared<GpuWindow>(session, local, state->core->rank(), memories); });
  const unsigned slot = free_slot(offers_of_all(*state->core, mine));
  if (slot != 0) state->show_in(shown_in, slot, symmetric);
  return state;
}

void Window::State::show_in(const std::shared_ptr<ExposedMemory>& all, unsigned in_slot, bool symmetric) {
  ExposedMemory::Window window{{}, on_gpus, symmetric ? local : Region{}};
  for (int rank = 0; rank < core->size(); ++rank) window.ranks.push_back(on_gpus->at(rank));
  shown_in_ = all;
  shown_in_->add(in_slot, std::move(window));
  slot_ = in_slot;
}

void Window::State::check(int rank, Bytes offset, Bytes length) const {
  if (rank < 0 || rank >= core->size())
    throw Error(ErrorKind::invalid_input, "the window has no rank " + std::to_string(rank));
  const Bytes all = bytes[static_cast<std::size_t>(rank)];
  if (offset > all || length > all - offset)
    throw Error(ErrorKind::invalid_input, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + length) +
                                              " are not within the " + std::to_string(all) + " that rank " +
                                              std::to_string(rank) + " has exposed");
}

void Window::State::check_access(int rank, Bytes offset, Bytes length) const {
  check(rank, offset, length);
  if (session().engine().is_encrypted(core->members().peer(rank)))
    throw Error(ErrorKind::unavailable, "put, get and signal are not encrypted, and rank " + std::to_string(rank) +
                                            " is on another machine: use messages, or do without WAYWISER_ENCRYPT=1");
}

}  // namespace waywiser
