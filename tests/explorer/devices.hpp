#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser::explorer {

// GPUs whose work runs when the schedule says so: in order within a stream, in any order between streams.
class Devices {
 public:
  explicit Devices(Course& course) : course_(course) {}

  using Queue = std::deque<std::function<void()>>;
  std::shared_ptr<Queue> open() { return queues_.emplace_back(std::make_shared<Queue>()); }
  void enqueue(Queue& queue, std::function<void()> work) {
    queue.push_back(std::move(work));
    course_.changed();
  }
  // A helper thread: carries out enqueued work, for ever.
  void work() {
    for (;;) {
      std::vector<Queue*> busy;
      for (const auto& queue : queues_)
        if (!queue->empty()) busy.push_back(queue.get());
      if (busy.empty()) {
        course_.idle();
        continue;
      }
      Queue& queue = *busy[course_.choose(static_cast<unsigned>(busy.size()), true)];
      queue.front()();
      queue.pop_front();
      course_.changed();
      course_.step();
    }
  }

 private:
  Course& course_;
  std::vector<std::shared_ptr<Queue>> queues_;
};

class ExploredEvent : public Event {
 public:
  bool done() const override { return done_; }
  void synchronize(Deadline) const override {}
  Seconds since(const Event&) const override { return 0; }

 private:
  friend class ExploredStream;
  bool done_ = false;
};

class ExploredStream : public Stream {
 public:
  ExploredStream(Devices& devices, Place place) : devices_(devices), place_(place), queue_(devices.open()) {}
  Place place() const override { return place_; }
  void copy(Region destination, ConstRegion source) override {
    devices_.enqueue(*queue_, [=] { std::memcpy(destination.data, source.data, source.bytes); });
  }
  void record(Event& event) override {
    auto& mine = static_cast<ExploredEvent&>(event);
    mine.done_ = false;
    devices_.enqueue(*queue_, [&mine] { mine.done_ = true; });
  }
  bool done() override { return queue_->empty(); }
  void launch(const Kernel&) override { refuse(); }
  void write_value(Region, std::uint64_t) override { refuse(); }
  void wait_value(ConstRegion, std::uint64_t) override { refuse(); }
  void call(std::function<void()>) override { refuse(); }
  void wait(const Event&) override { refuse(); }
  void synchronize(Deadline) override {
    if (!done()) refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw Error(ErrorKind::unavailable, "an explored stream does not do this"); }

  Devices& devices_;
  Place place_;
  std::shared_ptr<Devices::Queue> queue_;
};

class ExploredTransport : public Transport {
 public:
  void put(Region destination, ConstRegion source, Stream& stream) override { stream.copy(destination, source); }
  void signal(Region, std::uint64_t, Stream&) override {}
};

// The platform of one rank. Its GPU has the rank's number, so identities differ.
class ExploredPlatform : public Platform {
 public:
  explicit ExploredPlatform(Devices& devices) : devices_(devices) {}
  std::string_view backend() const override { return "virtual_gpu"; }
  int gpu_count() const override { return 2; }
  std::string identity(int gpu) const override { return "gpu" + std::to_string(gpu); }
  Bytes free_memory(Place) const override { return 0; }
  std::optional<std::string> why_no_peer_access(int, int) const override { return {}; }
  void set_peer_access(int, int, bool) override {}
  std::optional<std::string> why_not_allocatable(Place, Allocation) const override { return {}; }
  Memory allocate(Place place, Bytes bytes, Allocation allocation) override {
    struct Owner : MemoryOwner {
      std::vector<std::byte> bytes_of_it;
    };
    auto owner = std::make_unique<Owner>();
    owner->bytes_of_it.resize(bytes);
    owner->region = {owner->bytes_of_it.data(), bytes, place};
    owner->allocation = allocation;
    return Memory(std::move(owner));
  }
  MemoryHandle export_memory(const Memory&) override { return {}; }
  Memory open_memory_for(const MemoryHandle&, Place) override { return {}; }
  std::unique_ptr<Stream> open_stream(Place place) override {
    return std::make_unique<ExploredStream>(devices_, place);
  }
  std::unique_ptr<Event> create_event(Place) override { return std::make_unique<ExploredEvent>(); }
  std::string state() const override { return "{}"; }

 private:
  Devices& devices_;
};

// How the ranks of a scenario reach each other's GPUs.
struct Reach {
  bool same_machine = true;
  bool sender_shares = true, receiver_shares = true;
  bool receiver_reads = true;  // by a kernel
  bool sender_opens = true;    // the memory that the receiver shares
};

}  // namespace waywiser::explorer
