#pragma once

#include <memory>
#include <string>

#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {

// A virtual machine, of which something is different.
class Different : public Platform {
 public:
  explicit Different(const VirtualMachine& machine) : real_(open_virtual_platform(machine)) {}

  MemoryHandle export_memory(const Memory& memory) override { return real_->export_memory(memory); }
  std::string_view backend() const override { return real_->backend(); }
  int gpu_count() const override { return real_->gpu_count(); }
  Bytes free_memory(Place place) const override { return real_->free_memory(place); }
  std::optional<std::string> why_no_peer_access(int gpu, int peer) const override {
    return real_->why_no_peer_access(gpu, peer);
  }
  void set_peer_access(int gpu, int peer, bool on) override { real_->set_peer_access(gpu, peer, on); }
  std::optional<std::string> why_not_allocatable(Place place, Allocation allocation) const override {
    return real_->why_not_allocatable(place, allocation);
  }
  Memory allocate(Place place, Bytes bytes, Allocation allocation) override {
    return real_->allocate(place, bytes, allocation);
  }
  Memory open_memory_for(const MemoryHandle& handle, Place user) override {
    return real_->open_memory_for(handle, user);
  }
  SharedRegion share(ConstRegion region) override { return real_->share(region); }
  Memory open_shared(const SharedRegion& shared, Place user) override { return real_->open_shared(shared, user); }
  std::unique_ptr<Stream> open_stream(Place place) override { return real_->open_stream(place); }
  std::unique_ptr<Event> create_event(Place place) override { return real_->create_event(place); }
  std::string state() const override { return real_->state(); }

 protected:
  Platform& real() { return *real_; }

 private:
  std::unique_ptr<Platform> real_;
};

}  // namespace waywiser
