// Kernels of collectives and of messages, under every order in which stores arrive up to a bound.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/explorer/expect.hpp"
#include "tests/explorer/explored_block.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/collective/fused/ll128_body.hpp"
#include "waywiser/collective/fused/ll_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/failure.hpp"

namespace waywiser::explorer {
namespace {

constexpr std::uint64_t no_deadline = ~std::uint64_t{0};
constexpr unsigned most = 4;  // ranks

// Kernels of a stream: each begins after all blocks of the previous one have ended.
class InOrder {
 public:
  InOrder(Course& course, unsigned blocks) : course_(course), blocks_(blocks) {}
  template <typename Body>
  void run(unsigned kernel, Body body) {
    while (ended_ < kernel * blocks_) course_.idle();
    body();
    ++ended_;
    course_.changed();
  }

 private:
  Course& course_;
  unsigned blocks_, ended_ = 0;
};

// Two consecutive operations use different buffers; the third uses that of the first.
struct Reductions {
  fused::Method method;
  unsigned ranks, blocks, operations;
  std::size_t count;  // numbers
};

float given(unsigned rank, unsigned operation, std::size_t i) {
  return static_cast<float>(100 * operation + 10 * rank + i);
}

class Group {
 public:
  Group(Course& course, const Reductions& what)
      : course_(course), what_(what), layout_{what.ranks, 64, 4096, 16}, states_(what.ranks), notices_(what.ranks) {
    for (unsigned rank = 0; rank < what.ranks; ++rank) {
      landings_.emplace_back(layout_.bytes() / sizeof(Vector16) + 1);
      streams_.emplace_back(course, what.blocks);
      for (unsigned operation = 0; operation < what.operations; ++operation) {
        std::vector<float> in(what.count);
        for (std::size_t i = 0; i < what.count; ++i) in[i] = given(rank, operation, i);
        in_.push_back(std::move(in));
        out_.emplace_back(what.count);
      }
    }
  }

  void go() {
    for (unsigned rank = 0; rank < what_.ranks; ++rank)
      for (unsigned block = 0; block < what_.blocks; ++block)
        course_.thread("rank " + std::to_string(rank) + ", block " + std::to_string(block), [this, rank, block] {
          for (unsigned operation = 0; operation < what_.operations; ++operation)
            streams_[rank].run(operation, [&] { reduce(rank, block, operation); });
        });
    course_.go();
    for (unsigned rank = 0; rank < what_.ranks; ++rank) require_sums(rank, what_.operations);
  }

  // The group fails at any time: the host of each rank stops its kernels of one block. `late`: how many of the last
  // ranks have enqueued nothing.
  void go_and_fail(unsigned late) {
    std::vector<unsigned> ended(what_.ranks);
    for (unsigned rank = 0; rank < what_.ranks; ++rank) {
      if (rank + late < what_.ranks)
        course_.thread("rank " + std::to_string(rank), [this, rank, &ended] {
          try {
            while (ended[rank] < what_.operations) {
              reduce(rank, 0, ended[rank]);
              ++ended[rank];
            }
          } catch (const Trap&) {
          }
        });
      course_.thread("host of rank " + std::to_string(rank), [this, rank] {
        course_.step();
        on_stream::stop(notices_[rank]);
        course_.changed();
      });
    }
    course_.go();
    for (unsigned rank = 0; rank + late < what_.ranks; ++rank) {
      require_sums(rank, ended[rank]);
      const auto failure = on_stream::failure_in(notices_[rank]);
      course_.require(failure.has_value() == (ended[rank] < what_.operations), "an end without its reason");
      course_.require(!failure || failure->reason == block::Reason::stopped, "another reason");
      course_.require(late == 0 || ended[rank] == 0, "an end without its peer");
    }
  }

 private:
  void require_sums(unsigned rank, unsigned operations) {
    for (unsigned operation = 0; operation < operations; ++operation)
      for (std::size_t i = 0; i < what_.count; ++i)
        course_.require(out_[at(rank, operation)][i] == sum(operation, i), "a wrong sum");
  }
  std::size_t at(unsigned rank, unsigned operation) const { return std::size_t{rank} * what_.operations + operation; }
  float sum(unsigned operation, std::size_t i) const {
    float all = 0;
    for (unsigned rank = 0; rank < what_.ranks; ++rank) all += given(rank, operation, i);
    return all;
  }
  fused::FusedArguments arguments(unsigned rank) {
    fused::FusedArguments arguments{{},
                                    &states_[rank],
                                    &notices_[rank],
                                    table_.data(),
                                    layout_,
                                    rank,
                                    no_deadline,
                                    fused::most_blocks / what_.blocks,
                                    fused::most_blocks % what_.blocks};
    for (unsigned peer = 0; peer < what_.ranks; ++peer)
      arguments.landing[peer] = reinterpret_cast<std::byte*>(landings_[peer].data());
    return arguments;
  }
  void reduce(unsigned rank, unsigned number, unsigned operation) {
    const fused::FusedArguments terms = arguments(rank);
    CollectiveCall call;
    call.operation = Collective::all_reduce;
    call.ranks = static_cast<int>(what_.ranks);
    const on_stream::Description description{static_cast<std::uint32_t>(Collective::all_reduce), DataType::float32,
                                             ReduceOp::sum, -1, what_.count};
    const fused::Buffers buffers{reinterpret_cast<const std::byte*>(in_[at(rank, operation)].data()),
                                 reinterpret_cast<std::byte*>(out_[at(rank, operation)].data()), what_.count * 4, 0,
                                 description.word()};
    const fused::FusedWork work = fused::works(call, DataType::float32, ReduceOp::sum, buffers, what_.method, 64).at(0);
    ExploredBlock block(course_, number, what_.blocks, is_ll128(what_.method) ? 32 : 4, &notices_[rank]);
    run(block, terms, work);
    block.end();
  }
  void run(ExploredBlock& block, const fused::FusedArguments& terms, const fused::FusedWork& work) {
    using fused::Method;
    switch (what_.method) {
      case Method::ll: return fused::LlBody<float, most, false, ExploredBlock>(block, terms, work).run();
      case Method::one_shot:
        return fused::PushBody<float, most, false, ExploredBlock>(block, terms, work).run_one_shot();
      case Method::two_shot:
        return fused::PushBody<float, most, false, ExploredBlock>(block, terms, work).run_two_shot();
      case Method::ll128:
        return fused::Ll128Body<float, most, 1, false, ExploredBlock>(block, terms, work).run_one_shot();
      default: return fused::Ll128Body<float, most, 2, false, ExploredBlock>(block, terms, work).run_two_shot();
    }
  }

  Course& course_;
  const Reductions what_;
  fused::LandingLayout layout_;
  std::vector<fused::FusedState> states_;
  std::vector<block::Notice> notices_;
  std::array<block::Exposed, std::size_t{block::exposed_slots + 1} * block::max_ranks> table_;
  std::vector<std::vector<Vector16>> landings_;
  std::vector<InOrder> streams_;
  std::vector<std::vector<float>> in_, out_;
};

constexpr fused::Method methods[] = {fused::Method::ll, fused::Method::one_shot, fused::Method::two_shot,
                                     fused::Method::ll128, fused::Method::two_shot_ll128};

void expect_sums(const Reductions& what, Bounds bounds) {
  expect_no_problem(
      std::string(fused::name(what.method)) + ", " + std::to_string(what.ranks) + " ranks of " +
          std::to_string(what.blocks) + " blocks",
      [&](Course& course) { Group(course, what).go(); }, bounds);
}

TEST(ExploredKernels, SumsAreRightHoweverStoresArrive) {
  for (const fused::Method method : methods) {
    expect_sums({method, 2, 1, 3, 3}, {.deviations = is_ll128(method) ? 1u : 2u, .switches_cost = true});
    expect_sums({method, 3, 1, 2, 5}, {.deviations = 1, .switches_cost = true});
    expect_sums({method, 2, 2, 3, 9}, {.deviations = 1, .switches_cost = true});
  }
}

// A cancelled operation has no result, every result is right, and nobody waits for ever.
TEST(ExploredKernels, AGroupThatFailsEndsKernelsThatWait) {
  for (const fused::Method method : methods)
    for (const unsigned late : {0u, 1u}) {
      const Reductions what{method, 2, 1, 2, 3};
      expect_no_problem(std::string(fused::name(method)) + ", cancelled, " + std::to_string(late) + " late",
                        [&](Course& course) { Group(course, what).go_and_fail(late); },
                        {.deviations = is_ll128(method) ? 1u : 2u, .switches_cost = true});
    }
}

// Rank 0 sends rank 1 more messages, one after another, than there are slots.
struct Messages {
  messages::Kind kind;
  unsigned blocks, count;
  std::size_t bytes, piece;
};

class Pair {
 public:
  Pair(Course& course, const Messages& what)
      : course_(course), what_(what), streams_{InOrder(course, what.blocks), InOrder(course, what.blocks)} {
    for (unsigned rank = 0; rank < 2; ++rank) {
      landings_[rank].resize(layout_.bytes() / sizeof(Vector16) + 1);
      states_[rank] = std::make_unique<messages::MessageState>();
    }
    for (unsigned message = 0; message < what.count; ++message) {
      sent_.emplace_back(what.bytes);
      for (std::size_t i = 0; i < what.bytes; ++i) sent_.back()[i] = static_cast<std::byte>(i * 7 + message * 29 + 1);
      got_.emplace_back(what.bytes);
    }
  }

  void go() {
    for (unsigned rank = 0; rank < 2; ++rank)
      for (unsigned block = 0; block < what_.blocks; ++block)
        course_.thread(std::string(rank == 0 ? "sender" : "receiver") + ", block " + std::to_string(block),
                       [this, rank, block] {
                         for (unsigned message = 0; message < what_.count; ++message)
                           streams_[rank].run(message, [&] { carry(rank, block, message); });
                       });
    course_.go();
    course_.require(sent_ == got_, "other bytes have come");
  }

 private:
  // Made once for all blocks of a message.
  const messages::MessagePart& part(unsigned rank, unsigned message, const messages::MessageArguments& terms) {
    auto& known = parts_[rank];
    if (known.size() == message) {
      std::vector<std::byte>& data = (rank == 0 ? sent_ : got_)[message];
      messages::MessagePart made{data.data(), data.size(), what_.piece, 1 - rank, what_.blocks, 0, what_.kind};
      const on_stream::Description description{on_stream::Description::message, DataType::uint8, {}, -1, data.size()};
      made.description = description.word();
      made.signature = std::uint64_t{description.of_message()} << 32;
      known.push_back(messages::with_places(terms, made, rank == 0));
    }
    return known[message];
  }
  void carry(unsigned rank, unsigned channel, unsigned message) {
    messages::MessageArguments terms{{},   states_[rank].get(), &notices_[rank], exposed_.data(), layout_,
                                     rank, no_deadline};
    for (unsigned peer = 0; peer < 2; ++peer)
      terms.landing[peer] = reinterpret_cast<std::byte*>(landings_[peer].data());
    const messages::MessagePart mine = part(rank, message, terms);
    ExploredBlock block(course_, channel, what_.blocks, 32);
    messages::MessageBody<ExploredBlock, messages::Fit::any> body(block, terms, mine, false, channel);
    rank == 0 ? body.send() : body.receive();
    block.end();
  }

  Course& course_;
  const Messages what_;
  messages::Layout layout_{2};
  std::array<std::vector<Vector16>, 2> landings_;
  std::array<std::unique_ptr<messages::MessageState>, 2> states_;
  std::array<block::Notice, 2> notices_;
  std::array<block::Exposed, std::size_t{block::exposed_slots + 1} * block::max_ranks> exposed_;
  std::array<std::vector<messages::MessagePart>, 2> parts_;
  std::array<InOrder, 2> streams_;
  std::vector<std::vector<std::byte>> sent_, got_;
};

TEST(ExploredKernels, MessagesComeWholeHoweverStoresArrive) {
  for (const Messages& what :
       {Messages{messages::Kind::ll, 1, 3, 20, 64},
        Messages{messages::Kind::ll128, 1, 2, 300, block::data_bytes_of_pair},
        Messages{messages::Kind::bulk, 1, 2, 200, 96}, Messages{messages::Kind::bulk, 2, 2, 200, 64}})
    expect_no_problem("messages of kind " + std::to_string(static_cast<int>(what.kind)),
                      [&](Course& course) { Pair(course, what).go(); }, {.deviations = 1, .switches_cost = true});
}

}  // namespace
}  // namespace waywiser::explorer
