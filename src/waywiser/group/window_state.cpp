#include "waywiser/group/window_state.hpp"

#include <bit>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/peer_memory/handle_exchange.hpp"

namespace waywiser {
namespace {

// A slot that no rank uses; 0: there is none.
unsigned free_slot(HostCollectives& hosts, const ExposedMemory& exposed) {
  const std::uint32_t mine = exposed.in_use();
  std::vector<std::uint32_t> all(static_cast<std::size_t>(hosts.size()));
  hosts.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  std::uint32_t in_use = 1;
  for (const std::uint32_t each : all) in_use |= each;
  const auto slot = static_cast<unsigned>(std::countr_one(in_use));
  return slot <= ExposedMemory::slots ? slot : 0;
}

}  // namespace

Window::State::~State() {
  if (slot_ != 0 && !session().is_forked()) shown_in_->remove(slot_);
}

std::unique_ptr<Window::State> Window::State::of_host(std::shared_ptr<HostCollectives> hosts, Region memory) {
  auto state = std::make_unique<State>(std::move(hosts), memory);
  HostCollectives& group = *state->hosts;
  state->on_hosts = std::make_unique<HostWindow>(group.session(), group.members(), memory, group);
  for (int rank = 0; rank < group.size(); ++rank) state->bytes.push_back(state->on_hosts->bytes_of(rank));
  return state;
}

std::unique_ptr<Window::State> Window::State::of_gpu(std::shared_ptr<HostCollectives> hosts, const Memory& memory,
                                                     const std::shared_ptr<ExposedMemory>& shown_in) {
  Session& session = hosts->session();
  const Region local = memory.region();
  const MemoryHandle mine = session.platform().export_memory(memory);
  const Call call = hosts->next_call(CallKind::expose, {local, DataType::uint8});
  const InCall in_call(session, call);
  const std::vector<MemoryHandle> all = exchange_handles(*hosts, session, hosts->members(), call, mine);
  const unsigned slot = free_slot(*hosts, *shown_in);
  auto state = std::make_unique<State>(std::move(hosts), local);
  for (const MemoryHandle& handle : all) state->bytes.push_back(handle.bytes);
  state->on_gpus = std::make_shared<GpuWindow>(session, local, state->hosts->rank(), all);
  if (slot != 0) state->show_in(shown_in, slot);
  return state;
}

void Window::State::show_in(const std::shared_ptr<ExposedMemory>& all, unsigned in_slot) {
  ExposedMemory::Window window{{}, on_gpus};
  for (int rank = 0; rank < hosts->size(); ++rank) window.ranks.push_back(on_gpus->at(rank));
  shown_in_ = all;
  shown_in_->add(in_slot, std::move(window));
  slot_ = in_slot;
}

void Window::State::check(int rank, Bytes offset, Bytes length) const {
  if (rank < 0 || rank >= hosts->size())
    throw Error(ErrorKind::invalid_input, "the window has no rank " + std::to_string(rank));
  const Bytes all = bytes[static_cast<std::size_t>(rank)];
  if (offset > all || length > all - offset)
    throw Error(ErrorKind::invalid_input, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + length) +
                                              " are not within the " + std::to_string(all) + " that rank " +
                                              std::to_string(rank) + " has exposed");
}

void Window::State::check_access(int rank, Bytes offset, Bytes length) const {
  check(rank, offset, length);
  if (session().engine().is_encrypted(hosts->members().peer(rank)))
    throw Error(ErrorKind::unavailable, "put, get and signal are not encrypted, and rank " + std::to_string(rank) +
                                            " is on another machine: use messages, or do without WAYWISER_ENCRYPT=1");
}

}  // namespace waywiser
