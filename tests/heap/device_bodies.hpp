#pragma once

// Kernels that make every device call and compare with what plain arrays say, for two ranks or more: one source for
// hosts and virtual GPUs (device_calls_test.cpp) and for GPUs (cuda/device_calls_on_gpus_test.cu).
#include "tests/heap/order_bodies.hpp"
#include "tests/heap/team_bodies.hpp"
#include "tests/heap/transfer_bodies.hpp"
#include "tests/heap/word_bodies.hpp"

namespace waywiser::one_sided {

// Nobody changes the word of rank 0.
struct NobodySignals {
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    auto* word = body.template at<std::uint64_t>(4096);
    if (body.leads()) *word = 3;
    if (body.rank() == 0) body.ranks.template wait_until<Scope::block>(word, Comparison::ge, 4, 1);
  }
};

// f(name, body) for all that need not stop.
template <typename Function>
void each_body(Function f) {
  f("puts with signals", PutsWithSignals{});
  f("puts and gets", PutsAndGets{});
  f("atomics", Atomics{});
  f("waits", Waits{});
  f("a team", TeamCalls{});
  f("packets", PacketCalls{});
  f("opened memory", OpenedMemory{});
  f("message passing", MessagePassing{});
  f("signal after put", SignalAfterPut<SignalOp::set>{});
  f("added signal after put", SignalAfterPut<SignalOp::add>{});
  f("put, put", PutPut{});
  f("store buffering", StoreBuffering{});
  f("load buffering", LoadBuffering{});
  f("blocks", BlocksOrder{});
}

}  // namespace waywiser::one_sided
