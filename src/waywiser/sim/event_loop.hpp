#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

#include "waywiser/sim/flow_network.hpp"

namespace waywiser::sim {

// Is told that something has happened; `token` belongs to the listener.
class Listener {
 public:
  virtual void wake(std::uint64_t token) = 0;

 protected:
  ~Listener() = default;
};

// A virtual clock, a queue of events and a network of flows. Between events every flow f moves rate(f) bytes a second,
// so it ends at  now + left(f) / rate(f)  until another flow starts or ends. Simultaneous events are processed in the
// order of their creation; the network is solved once for all of them. Nothing depends on the machine's clock, on
// addresses or on randomness: the same calls give the same times to the last digit.
class EventLoop {
 public:
  FlowNetwork& network() noexcept { return network_; }
  const FlowNetwork& network() const noexcept { return network_; }
  Seconds now() const noexcept { return now_; }

  void after(Seconds seconds, Listener& who, std::uint64_t token);
  // `bytes` over `uses` after `latency`; zero bytes arrive after the latency. Infinitely
  // many never arrive; they share their hops with the others until those have ended.
  void transfer(std::span<const Use> uses, BytesPerSecond cap, double bytes, Seconds latency, Listener& who,
                std::uint64_t token);
  // Runs until no event is left, or until `go_on`, which is asked before each moment, says no.
  void run(const std::function<bool()>& go_on = {});

  double bytes_moved() const noexcept { return moved_; }
  std::uint64_t events() const noexcept { return events_; }
  std::uint64_t flows() const noexcept { return flows_begun_; }

 private:
  enum class Kind : std::uint8_t { wake, begin, end };
  struct Event {
    Seconds at;
    std::uint64_t number;
    std::uint32_t flow;  // of begin: in waiting_; of end: FlowId
    std::uint32_t version;
    Listener* who;
    std::uint64_t token;
    Kind kind;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  struct Waiting {
    std::vector<Use> uses;
    BytesPerSecond cap;
    double bytes;
  };
  struct Moving {
    double left = 0;
    double rate = 0;
    Seconds since = 0;
    std::uint32_t version = 0;
    Listener* who = nullptr;
    std::uint64_t token = 0;
  };

  bool is_void(const Event& event) const;
  void push(Seconds at, Kind kind, std::uint32_t flow, std::uint32_t version, Listener* who, std::uint64_t token);
  void serve(const Event& event);
  void begin(const Event& event);
  void end(const Event& event);
  void settle();

  FlowNetwork network_;
  Seconds now_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<Waiting> waiting_;
  std::vector<std::uint32_t> free_waiting_;
  std::vector<Moving> moving_;  // by FlowId
  double moved_ = 0;
  std::uint64_t numbers_ = 0, events_ = 0, flows_begun_ = 0;
};

}  // namespace waywiser::sim
