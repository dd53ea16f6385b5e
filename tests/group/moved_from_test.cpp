// Handles that were moved from: a program that uses one by mistake is told so.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/halo/grid.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/offload/data_road.hpp"
#include "waywiser/offload/remote_driver.hpp"
#include "waywiser/offload/remote_gpu.hpp"

namespace waywiser {
namespace {

using Calls = std::vector<std::function<void()>>;

void require_said_by_all(const Calls& calls, const std::string& wanted) {
  for (const auto& call : calls) {
    const std::string said = error_of(call);
    require_that(said == wanted, wanted + ", not: " + said);
  }
}

struct OneRank : TestRanks {
  OneRank() : TestRanks(1) { virtual_gpus = 1; }
};

TEST(MovedFrom, AWindowSaysSo) {
  EXPECT_EQ(OneRank().in_threads([](Group& group) {
    std::array<std::uint64_t, 2> words{};
    const Region memory{reinterpret_cast<std::byte*>(words.data()), sizeof words, host(0)};
    Window window = group.expose(memory);
    Window other(std::move(window));
    require_said_by_all(
        {[&] { window.local(); }, [&] { window.bytes_of(0); }, [&] { window.put(memory, 0, 0); },
         [&] { window.get(memory, 0, 0); }, [&] { window.signal(0, 0, 1); }, [&] { window.wait(0, 0); }},
        "this Window was moved from: its memory is in another one");
    window = std::move(other);
    window.signal(0, 0, 1);
    window.wait(0, 1);
  }),
            no_problems);
}

TEST(MovedFrom, APreparedOperationSaysSo) {
  EXPECT_EQ(OneRank().in_threads([](Group& group) {
    Prepared exchange = group.prepare_exchange({});
    Prepared other(std::move(exchange));
    const auto stream = group.platform()->open_stream(gpu(0));
    require_said_by_all({[&] { exchange.start(); }, [&] { exchange.start(*stream); }, [&] { exchange.wait(); },
                         [&] { exchange.keep({}); }, [&] { exchange.why_staged(); }, [&] { exchange.why_copied(); },
                         [&] { exchange.explain(); }},
                        "this Prepared was moved from: its operation is in another one");
    exchange = std::move(other);
    exchange.start();
    exchange.wait();
  }),
            no_problems);
}

TEST(MovedFrom, AHeapSaysSo) {
  EXPECT_EQ(OneRank().in_threads([](Group& group) {
    Heap heap(group, "heap", host(0), 4096);
    Heap other(std::move(heap));
    const auto stream = group.platform()->open_stream(gpu(0));
    const Region memory = other.local();
    require_said_by_all(
        {[&] { heap.name(); }, [&] { heap.local(); }, [&] { heap.peer(0); }, [&] { heap.why_proxied(0); },
         [&] { heap.share(memory); }, [&] { heap.open({}); }, [&] { heap.terms(); }, [&] { heap.inbox_bytes(8); },
         [&] { heap.why_no_lines(); }, [&] { heap.set_deadline(1); }, [&] { heap.check(); },
         [&] { heap.synchronize(*stream); }, [&] { heap.put(*stream, memory, 0, 0); }, [&] { heap.split(0); },
         [&] { heap.world(); }, [&] { heap.split_strided(0, 1, 1); }, [&] { heap.split_2d(1); }},
        "this Heap was moved from: its memory is in another one");
    heap = std::move(other);
    heap.check();
  }),
            no_problems);
}

TEST(MovedFrom, AHaloExchangeSaysSo) {
  EXPECT_EQ(OneRank().in_threads([](Group& group) {
    std::vector<double> values(100);
    const HaloPartition partition = grid_partition(even_grid({4, 4}, {1, 1}, {true, true}, std::array{1, 1}), 0);
    const HaloArray fields[] = {{std::span(values).first(partition.cells)}};
    HaloExchange exchange(group, partition, fields);
    HaloExchange other(std::move(exchange));
    require_said_by_all({[&] { exchange.start(); }, [&] { exchange.finish(); }, [&] { exchange.set_fields(fields); },
                         [&] { exchange.variant(); }, [&] { exchange.use(HaloVariant::packed); },
                         [&] { exchange.sides(); }, [&] { exchange.tune(1); }, [&] { exchange.explain(); },
                         [&] { exchange.counts(); }, [&] { exchange.times(); }, [&] { exchange.keep({}); }},
                        "this HaloExchange was moved from: its fields are in another one");
    exchange = std::move(other);
    exchange.exchange();
  }),
            no_problems);
}

TEST(MovedFrom, ARemoteGpuSaysSo) {
  EXPECT_EQ(OneRank().in_threads([](Group& group) {
    RemoteGpu gpu(std::move(group), "the GPU", 4096);
    RemoteGpu other(std::move(gpu));
    RemoteDriver driver(gpu);
    std::array<std::byte, 8> bytes{};
    const Region memory{bytes.data(), bytes.size(), host(0)};
    const ArrayHead head{DataType::uint8, false, {8}};
    require_said_by_all({[&] { gpu.name(); },
                         [&] { gpu.limit(); },
                         [&] { gpu.encrypted_by(); },
                         [&] { gpu.data_encrypted_by(); },
                         [&] { gpu.use_plain_data(); },
                         [&] { gpu.use_road(DataRoad::pipelined); },
                         [&] { gpu.zeros(head); },
                         [&] { gpu.array(head, memory); },
                         [&] { gpu.put(1, 0, memory); },
                         [&] { gpu.get(1, {memory, DataType::uint8}); },
                         [&] { gpu.pinned(8); },
                         [&] { gpu.pinned_by(bytes.data()); },
                         [&] { gpu.free(1); },
                         [&] { gpu.run("sum", {}); },
                         [&] { gpu.load_kernels("code"); },
                         [&] { gpu.launch(1, "kernel", {}, {}); },
                         [&] { gpu.new_stream(); },
                         [&] { gpu.use_stream(1); },
                         [&] { gpu.new_event(); },
                         [&] { gpu.record(1); },
                         [&] { gpu.wait(1); },
                         [&] { gpu.await(1); },
                         [&] { gpu.since(2, 1); },
                         [&] { gpu.copy_of(other, 1); },
                         [&] { other.copy_of(gpu, 1); },
                         [&] { gpu.copies_plain(other); },
                         [&] { gpu.flush(); },
                         [&] { gpu.synchronize(); },
                         [&] { gpu.times(); },
                         [&] { gpu.align_clocks(); },
                         [&] { driver.hold(); },
                         [&] { driver.facts(); }},
                        "this RemoteGpu was moved from: its server and arrays are in another one");
    gpu.close();
    gpu = std::move(other);
    require_that(gpu.name() == "the GPU", gpu.name());
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
