#include "waywiser/sim/costs.hpp"

#include <gtest/gtest.h>

#include "tests/sim/package_machines.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

Device named(const std::string& kind, const std::string& name) { return {kind + "0", kind, name, "", 0, "", 0, {}}; }

// Real names that a declared one stands for: '#' by two digits, '*' by nothing and by a letter.
std::vector<std::string> names_of(const std::string& declared) {
  std::vector<std::string> names{""};
  for (const char c : declared) {
    const std::vector<std::string> choices = c == '#'   ? std::vector<std::string>{"1", "3"}
                                             : c == '*' ? std::vector<std::string>{"", "R"}
                                                        : std::vector<std::string>{std::string(1, c)};
    std::vector<std::string> longer;
    for (const std::string& name : names)
      for (const std::string& choice : choices) longer.push_back(name + choice);
    names = longer;
  }
  return names;
}

TEST(Costs, NamesAreWithoutMakerMarksClockAndCores) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"},   {"Tesla V100-SXM2-16GB", "V100-SXM2-16GB"},
      {"NVIDIA A100 80GB PCIe", "A100 80GB PCIe"},   {"Intel(R) Xeon(R) Gold 6240R CPU @ 2.40GHz", "Xeon Gold 6240R"},
      {"Intel Xeon E5-2698 v4", "Xeon E5-2698 v4"},  {"AMD EPYC 7742 64-Core Processor", "EPYC 7742"},
      {"POWER9 (raw), altivec supported", "POWER9"}, {"", ""}};
  for (const auto& [name, plain] : cases) EXPECT_EQ(plain_name(name), plain);
}

TEST(Costs, NoPartIsClaimedByTwoRows) {
  const Json parts = package_parts();
  int checked = 0;
  for (const Json& row : parts.at("parts")) {
    if (row.at("kind") == "any") continue;
    for (const Json& declared : row.at("names"))
      for (const std::string& name : names_of(declared.get<std::string>())) {
        ASSERT_EQ(part_of(named(row.at("kind"), name), parts, "parts"), &row) << name;
        ++checked;
      }
  }
  EXPECT_GT(checked, 100);
}

TEST(Costs, EachGpuOfEachMachineHasItsOwnRow) {
  const Json parts = package_parts();
  const std::map<std::string, double> multiprocessors{
      {"dgx-1v", 80}, {"dgx-2", 80},  {"dgx-a100", 108}, {"hse-a", 80},      {"hse-c", 80},
      {"hse-e", 108}, {"lassen", 80}, {"remote-t4", 40}, {"remote-a10", 72}, {"recorded-4xh200", 132}};
  for (const std::string& name : package_machines) {
    const Topology machine = package_machine(name);
    for (const Device& device : machine.devices) {
      const Json* row = part_of(device, parts, "parts");
      if (device.kind == "gpu") {
        ASSERT_NE(row, nullptr) << name << " " << device.name;
        EXPECT_EQ(row->at("values").at("sm.multiprocessors").at("value"), multiprocessors.at(name)) << device.name;
      }
    }
    EXPECT_EQ(costs_of(machine)["sm.multiprocessors"], multiprocessors.at(name)) << name;
  }
}

TEST(Costs, ANameWithinALongerNameIsNotThatPart) {
  const Json parts = package_parts();
  for (const char* name : {"NVIDIA A10G", "NVIDIA A1000", "NVIDIA A100X", "NVIDIA T400", "Quadro T4", "H20", ""})
    EXPECT_EQ(part_of(named("gpu", name), parts, "parts"), nullptr) << name;
  for (const char* name : {"Intel Xeon Gold 6", "AMD EPYC", "Intel(R) Xeon(R) Processor"})
    EXPECT_EQ(part_of(named("cpu", name), parts, "parts"), nullptr) << name;
}

TEST(Costs, ANameInTwoRowsIsRefused) {
  Json parts = package_parts();
  Json again = parts["parts"][1];
  again["names"] = {"V100-####-16GB", "V100-SXM2-##GB"};
  parts["parts"].push_back(again);
  EXPECT_THROW(costs_of(package_machine("dgx-1v"), parts, "parts"), Error);
  EXPECT_NO_THROW(costs_of(package_machine("hse-e"), parts, "parts"));
}

TEST(Costs, OfSeveralKindsTheOneOfMostCounts) {
  Topology machine = package_machine("hse-e");
  const double alone = costs_of(machine)["sm.multiprocessors"];
  for (Device& device : machine.devices)
    if (device.id == "gpu0") device.name = "Tesla T4";
  EXPECT_EQ(costs_of(machine)["sm.multiprocessors"], alone);
  for (Device& device : machine.devices)
    if (device.kind == "gpu" && device.id != "gpu7") device.name = "Tesla T4";
  EXPECT_EQ(costs_of(machine)["sm.multiprocessors"], 40);
}

TEST(Costs, NeedASourceAndKnownNames) {
  Json wrong = package_parts();
  wrong["parts"][0]["values"]["copy.issue"].erase("source");
  EXPECT_THROW(costs_of(package_machine("hse-a"), wrong, "parts"), Error);
  Costs costs = costs_of(package_machine("hse-a"));
  EXPECT_THROW(apply(costs, {{"copy.isue", 1}}, "--set"), Error);
  EXPECT_THROW(apply(costs, {{"copy.issue", -1}}, "--set"), Error);
}

TEST(Costs, FollowTheGenerationOfTheCpu) {
  EXPECT_GT(costs_of(package_machine("hse-a"))["cpu.p2p_read"], 3e9);
  EXPECT_EQ(costs_of(package_machine("hse-e"))["cpu.p2p_read"], 0);
}

}  // namespace
}  // namespace waywiser::sim
