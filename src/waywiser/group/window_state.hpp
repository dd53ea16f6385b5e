#pragma once

#include <vector>

#include "waywiser/collective/group_core.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/comm/windows/gpu_window.hpp"
#include "waywiser/comm/windows/host_window.hpp"
#include "waywiser/group/window.hpp"

namespace waywiser {

// The parts of a window, for the group that makes it.
struct [[gnu::visibility("hidden")]] Window::State {
  // Collective.
  static std::unique_ptr<State> of_host(std::shared_ptr<GroupCore> core, Region memory);
  static std::unique_ptr<State> of_gpu(std::shared_ptr<GroupCore> core, Region memory, bool symmetric,
                                       const std::shared_ptr<ExposedMemory>& shown_in);

  State(std::shared_ptr<GroupCore> group, Region memory) : core(std::move(group)), local(memory) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Session& session() const noexcept { return core->session(); }
  void check(int rank, Bytes offset, Bytes length) const;
  // Checks the range of a put or a get.
  void check_access(int rank, Bytes offset, Bytes length) const;

  const std::shared_ptr<GroupCore> core;
  const Region local;
  std::vector<Bytes> bytes;  // by rank
  // Exactly one of the two is set.
  std::unique_ptr<HostWindow> on_hosts;
  std::shared_ptr<GpuWindow> on_gpus;

 private:
  void show_in(const std::shared_ptr<ExposedMemory>& all, unsigned in_slot, bool symmetric);

  std::shared_ptr<ExposedMemory> shown_in_;
  unsigned slot_ = 0;  // its slot; 0: none
};

}  // namespace waywiser
