#include "waywiser/sim/exchange.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/sim/package_machines.hpp"
#include "waywiser/path/path.hpp"

namespace waywiser::sim {
namespace {

constexpr Bytes of_transfer = Bytes{64} << 20;

class Exchanges {
 public:
  Exchanges() : topology_(package_machine("dgx-1v")), node_(topology_, costs_of(topology_)) {}

  static Json transfer(const std::string& transports, int from, int to) {
    const bool remote = transports == "ib";
    Path path{"ucx", gpu(from), gpu(to), remote ? 1 : 2, {{"transports", transports}}};
    if (remote) path.parameters["gdr"] = "on";
    return {{"path", to_json(path)}, {"from_node", 0}, {"to_node", remote ? 1 : 0}, {"bytes", of_transfer}};
  }
  Json run(const std::vector<Json>& transfers) const {
    return simulate_exchange(node_, {{"cluster", {{"nodes", 2}}}, {"transfers", transfers}});
  }
  double seconds(const std::vector<Json>& transfers) const { return run(transfers).at("seconds").get<double>(); }

 private:
  Topology topology_;
  NodeModel node_;
};

TEST(Exchange, TransfersShareWhatTheyBothNeed) {
  const Exchanges of;
  const auto to = [](const char* transports, int from, int there) {
    return Exchanges::transfer(transports, from, there);
  };
  const double alone = of.seconds({to("tcp", 0, 1)});
  EXPECT_NEAR(of.seconds({to("tcp", 0, 1), to("tcp", 2, 3)}), alone, 0.01 * alone) << "other threads";
  EXPECT_NEAR(of.seconds({to("tcp", 0, 1), to("tcp", 0, 2)}), 2 * alone, 0.1 * alone) << "one thread sends";
  EXPECT_NEAR(of.seconds({to("tcp", 0, 1), to("tcp", 1, 0)}), 2 * alone, 0.1 * alone) << "each thread does both";
  const double card = of.seconds({to("ib", 0, 2)});
  EXPECT_NEAR(of.seconds({to("ib", 0, 2), to("ib", 1, 4)}), 2 * card, 0.1 * card) << "GPUs 0 and 1 have one card";
  EXPECT_NEAR(of.seconds({to("ib", 0, 2), to("ib", 2, 4)}), card, 0.01 * card);
  const Json both = of.run({to("cuda_ipc", 0, 1), to("tcp", 0, 5)});
  EXPECT_LT(both.at("ends")[0].get<double>(), both.at("ends")[1].get<double>() / 5) << "NVLink waits for no TCP";
  EXPECT_EQ(both.at("seconds"), both.at("ends")[1]);
  EXPECT_EQ(of.seconds({}), 0);
}

TEST(Exchange, RefusesWhatCannotBe) {
  const Exchanges of;
  const auto said = [&](const Json& transfer) { return error_of([&] { of.run({transfer}); }); };
  EXPECT_NE(said(Exchanges::transfer("cuda_ipc", 0, 5)).find("ucx(transports=cuda_ipc): no peer access"),
            std::string::npos);
  Json far = Exchanges::transfer("tcp", 0, 1);
  far["to_node"] = 2;
  EXPECT_NE(said(far).find("to_node"), std::string::npos);
  EXPECT_NE(said({{"bytes", 1}}).find("path"), std::string::npos);
}

}  // namespace
}  // namespace waywiser::sim
