#include "waywiser/policy/defaults.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "waywiser/policy/copy_defaults.hpp"
#include "waywiser/policy/message_defaults.hpp"

namespace waywiser {
namespace {

TEST(Defaults, EachHasAValueAUnitAndASource) {
  std::set<std::string> names;
  std::vector<const defaults::Default*> rows(std::begin(defaults::table), std::end(defaults::table));
  rows.insert(rows.end(), std::begin(defaults::heap_table), std::end(defaults::heap_table));
  rows.insert(rows.end(), std::begin(defaults::copy_table), std::end(defaults::copy_table));
  for (const defaults::Default* row : rows) {
    EXPECT_GT(row->value, 0u) << row->name;
    EXPECT_FALSE(row->unit.empty()) << row->name;
    EXPECT_FALSE(row->source.empty()) << row->name;
    EXPECT_TRUE(names.insert(std::string(row->name) + ", " + std::string(row->unit)).second) << row->name << " twice";
  }
}

}  // namespace
}  // namespace waywiser
