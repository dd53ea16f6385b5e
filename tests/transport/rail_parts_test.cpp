// Messages over two rails between workers of one process, by the loopback device.
#include "waywiser/transport/ucx/rail_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

namespace waywiser {
namespace {

constexpr ucp_tag_t some_tag = 4711;
constexpr Seconds rail_patience = 20;
const std::vector<int> percents{75, 25};

class RailPartsOfTwo : public testing::Test {
 protected:
  struct End {
    std::array<UcxEndpoint, 2> endpoints;
    std::vector<std::unique_ptr<UcxWorker>> workers;
    std::vector<UcxRail> rails;
  };

  void SetUp() override {
    if (!ucx_library().usable()) GTEST_SKIP() << ucx_library().why_not();
    const UcxSelection loopback{"tcp", "tcp", "lo"};
    for (End* end : {&one_, &other_})
      for (int i = 0; i < 2; ++i) end->workers.push_back(std::make_unique<UcxWorker>(UcxContext(loopback)));
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(one_.workers[i]->connect(one_.endpoints[i], other_.workers[i]->address(), false), UCS_OK);
      one_.rails.push_back({one_.workers[i].get(), &one_.endpoints[i], "rail"});
      other_.rails.push_back({other_.workers[i].get(), nullptr, "rail"});
    }
  }

  void progress() {
    for (const End* end : {&one_, &other_})
      for (const auto& worker : end->workers) worker->progress();
  }

  // How long the parts were, by rail.
  std::vector<Bytes> complete(RailParts& parts, const End& end) {
    std::vector<Bytes> lengths(2, 0);
    const auto ended = [&](const RailParts::Ended& part) {
      EXPECT_TRUE(part.status.good());
      if (!parts.is_receiving()) return;
      EXPECT_EQ(part.came, part.bytes);
      EXPECT_EQ(part.tag, some_tag);
      lengths[part.rail] = part.came;
    };
    const Deadline deadline = Deadline::in(rail_patience);
    while (!parts.test(end.rails, ended) && !deadline.passed()) progress();
    EXPECT_FALSE(parts.is_open());
    return lengths;
  }

  End one_, other_;
};

TEST_F(RailPartsOfTwo, EachCarriesItsShare) {
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4096}, Bytes{300001}, Bytes{4} << 20}) {
    std::vector<std::byte> sent(bytes), came(bytes + 1, std::byte{9});
    for (Bytes i = 0; i < bytes; ++i) sent[i] = static_cast<std::byte>(i * 7 % 251);
    RailParts sends, receives;
    ASSERT_TRUE(receives.receive(other_.rails, percents, {came.data(), bytes, host(0)}, some_tag).good());
    ASSERT_TRUE(sends.send(one_.rails, percents, {sent.data(), bytes, host(0)}, some_tag).good());
    const std::vector<Bytes> lengths = complete(receives, other_);
    complete(sends, one_);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), Bytes{0}), bytes);
    EXPECT_TRUE(bytes < 100000 || (lengths[0] > 2 * lengths[1] && lengths[1] > 0)) << lengths[0] << ":" << lengths[1];
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), came.begin()));
    EXPECT_EQ(came.back(), std::byte{9});
  }
  RailParts flush;
  ASSERT_TRUE(flush.flush(one_.rails).good());
  complete(flush, one_);
}

// Their memory is free when the worker says that they are over.
TEST_F(RailPartsOfTwo, PartsThatAreGivenUpComeToAnEnd) {
  std::vector<std::byte> nowhere(300001);
  RailParts receives;
  ASSERT_TRUE(receives.receive(other_.rails, percents, {nowhere.data(), nowhere.size(), host(0)}, some_tag).good());
  EXPECT_TRUE(receives.is_open());
  for (const RailParts::Part& part : receives.take()) {
    UcxWorker& worker = *other_.rails[part.rail].worker;
    worker.cancel(part.request);
    const Deadline deadline = Deadline::in(rail_patience);
    bool over = worker.give_up(part.request);
    while (!over && !deadline.passed()) {
      progress();
      over = worker.is_over(part.request);
    }
    EXPECT_TRUE(over);
  }
  EXPECT_FALSE(receives.is_open());
}

TEST_F(RailPartsOfTwo, AClosedConnectionIsNoLongerOpen) {
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(one_.endpoints[i].is_open());
    EXPECT_TRUE(one_.workers[i]->close(Deadline::in(rail_patience), [this] { progress(); }));
    EXPECT_FALSE(one_.endpoints[i].is_open());
    EXPECT_EQ(one_.workers[i]->broken(), nullptr);
  }
}

}  // namespace
}  // namespace waywiser
