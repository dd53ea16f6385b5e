#include "waywiser/policy/defaults.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace waywiser {
namespace {

TEST(Defaults, EachHasAValueAUnitAndASource) {
  std::set<std::string> names;
  for (const defaults::Default* row : defaults::table) {
    EXPECT_GT(row->value, 0u) << row->name;
    EXPECT_FALSE(row->unit.empty()) << row->name;
    EXPECT_FALSE(row->source.empty()) << row->name;
    EXPECT_TRUE(names.insert(std::string(row->name) + ", " + std::string(row->unit)).second) << row->name << " twice";
  }
}

}  // namespace
}  // namespace waywiser
