#include "waywiser/measure/profile.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/policy/made_up_links.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/policy/choose.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/explain.hpp"

namespace waywiser {
namespace {

Profile sample_profile() {
  Profile profile =
      made_up::made_up_profile({{"a", made_up::line(1e-6, 1e9), 1 << 20}, {"b", made_up::line(1e-5, 1e11)}}, 0.01);
  profile.series[0].path.parameters = {{"chunk", "64K"}};
  profile.series[0].limit = 4.5e10;
  profile.series[0].limit_source = "PCIe 4.0 x16";
  profile.searched = {profile.series[1]};
  profile.first_use = {{profile.series[0].path, 0.01}};
  profile.unavailable = {{made_up::made_up_path("c"), "not there"}};
  profile.state = {{"interrupted", false}};
  return profile;
}

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    return error.what();
  }
  return "";
}

TEST(ProfileJson, ReadsBackWhatWasWritten) {
  const std::string text = to_json(sample_profile()).dump();
  EXPECT_EQ(to_json(profile_from_json(parse_json(text, "p"), "p")).dump(), text);
}

TEST(PlanJson, ReadsBackWhatWasWritten) {
  const std::string text = to_json(choose(sample_profile(), {"a", "b"})).dump();
  EXPECT_EQ(to_json(plan_from_json(parse_json(text, "p"), "p")).dump(), text);
}

// The form of files from before places had a type of node.
TEST(ProfileJson, ThatOfVersion1IsRead) {
  Profile profile = sample_profile();
  for (Series& series : profile.series) series.path.destination = seen_from_other(gpu(0));
  profile.classes.front().members = {{gpu(0), seen_from_other(gpu(0))}};
  profile.state["other"] = {{"fingerprint", "b7ef00aa67f28849"}, {"machine", "there"}};
  Json value = to_json(profile);
  value["version"] = 1;
  value.erase("other_nodes");
  const Profile read = profile_from_json(value, "p");
  const Place there = parse_place("b7ef00aa67f28849:gpu0");
  EXPECT_EQ(read.series.front().path.destination, there);
  EXPECT_EQ(read.classes.front().members.front().second, there);
  EXPECT_EQ(read.other_nodes, (std::vector<OtherNode>{{"b7ef00aa67f28849", "there"}}));
  EXPECT_EQ(to_json(read)["version"], 2);
}

TEST(PlanJson, ThatOfAnOlderVersionNamesTheCommandThatMakesANewOne) {
  for (const int version : {1, 2}) {
    Json value = to_json(choose(sample_profile(), {"a", "b"}));
    value["version"] = version;
    const std::string message = refusal([&] { plan_from_json(value, "plan.json"); });
    EXPECT_NE(message.find("plan.json: "), std::string::npos) << message;
    EXPECT_NE(message.find("`waywiser plan`"), std::string::npos) << message;
  }
}

struct BadField {
  const char* pointer;  // where
  const char* value;    // what is written there
  const char* says;     // part of the message
};

class BadProfile : public ::testing::TestWithParam<BadField> {};

TEST_P(BadProfile, IsRefusedWithOneLine) {
  Json value = to_json(sample_profile());
  value[Json::json_pointer(GetParam().pointer)] = Json::parse(GetParam().value);
  const std::string message = refusal([&] { profile_from_json(value, "profile.json"); });
  EXPECT_NE(message.find("profile.json"), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().says), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadProfile,
    ::testing::Values(
        BadField{"/schema", "\"waywiser.plan\"", "schema"}, BadField{"/version", "3", "version 3"},
        BadField{"/fingerprint", "5", "fingerprint"}, BadField{"/simulated", "\"no\"", "simulated"},
        BadField{"/state", "[]", "state"}, BadField{"/classes", "{}", "classes"},
        BadField{"/classes/0/members", "[]", "members"}, BadField{"/classes/0/members/0", "[\"gpu0\"]", "members"},
        BadField{"/classes/0/processes", "3", "processes"}, BadField{"/series", "null", "series"},
        BadField{"/series/0/points/0/seconds", "0", "seconds"},
        BadField{"/series/0/points/0/seconds", "-1e-6", "seconds"}, BadField{"/series/0/points/0/low", "1", "between"},
        BadField{"/series/0/points/1/bytes", "1", "ascending"}, BadField{"/series/0/points/1/bytes", "-4", "bytes"},
        BadField{"/series/0/points/0/samples", "0", "samples"},
        BadField{"/series/0/points/0/verified", "1", "verified"},
        BadField{"/series/0/path/processes", "0", "processes"}, BadField{"/series/0/limit", "-1", "limit"},
        BadField{"/series/0/limit_source", "1", "limit_source"}, BadField{"/first_use/0/seconds", "\"x\"", "seconds"},
        BadField{"/unavailable/0/reason", "null", "reason"}, BadField{"/rejected/0/bytes", "1.5", "bytes"}));

class BadPlan : public ::testing::TestWithParam<BadField> {};

TEST_P(BadPlan, IsRefusedWithOneLine) {
  Json value = to_json(choose(sample_profile(), {"a", "b"}));
  value[Json::json_pointer(GetParam().pointer)] = Json::parse(GetParam().value);
  const std::string message = refusal([&] { plan_from_json(value, "plan.json"); });
  EXPECT_NE(message.find("plan.json"), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().says), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadPlan,
    ::testing::Values(BadField{"/schema", "\"waywiser.profile\"", "schema"}, BadField{"/version", "0", "version 0"},
                      BadField{"/rows", "5", "rows"}, BadField{"/rows/0/pairs", "[]", "pairs"},
                      BadField{"/rows/0/from_bytes", "-1", "from_bytes"},
                      BadField{"/rows/1/to_bytes", "0", "from_bytes"},
                      BadField{"/rows/0/ways/0/way", "\"a(b\"", "rows[0]"},
                      BadField{"/rows/0/ways", "[]", "'ways' is empty"},
                      BadField{"/rows/0/ways/0/ratio", "-1", "ratio"}, BadField{"/rows/0/encrypted", "1", "encrypted"},
                      BadField{"/rows/0/operation", "\"teleport\"", "rows[0]"},
                      BadField{"/rows/0/expected/0/seconds", "0", "seconds"}, BadField{"/rows/0/ways/0", "{}", "ratio"},
                      BadField{"/rows/0/why", "7", "why"}));

// Broken bytes and values either read or are refused with an Error; nothing else happens.
TEST(ProfileJson, MutatedTextsAreReadOrRefused) {
  const std::string profile = to_json(sample_profile()).dump();
  const std::string plan = to_json(choose(sample_profile(), {"a", "b"})).dump();
  std::mt19937_64 random(3);
  const std::string junk = "0123456789-{}[]\",:.eE\\x\xff null";
  for (int i = 0; i < 1000; ++i) {
    std::string text = i % 2 == 0 ? profile : plan;
    for (std::uint64_t change = 0; change <= random() % 4; ++change)
      text[random() % text.size()] = junk[random() % junk.size()];
    if (random() % 8 == 0) text.resize(random() % text.size());
    try {
      const Json value = parse_json(text, "fuzz");
      if (i % 2 == 0)
        choose(profile_from_json(value, "fuzz"), {"a", "b"});
      else
        plan_from_json(value, "fuzz");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    }
  }
}

// One value is replaced by one of another kind or size: if it is read, the profile can be used, by the look-up and by
// explain, or is refused with an Error about the input.
TEST(ProfileJson, ExchangedValuesAreUsedOrRefused) {
  const Json profile = to_json(sample_profile());
  const Json plan = to_json(choose(sample_profile(), {"a", "b"}));
  const Question question{gpu(0), gpu(1), 1, Operation::latency, 4096};
  const Json others = Json::parse(R"([null, true, -1, 0, 3, 1e308, 1e-300, 9223372036854775807, 18446744073709551615,
                                      "", "gpu0", "gpu4095", "latency", [], {}, [[]], {"points": []}])");
  for (const Json& whole : {profile, plan}) {
    const Json flat = whole.flatten();
    for (const auto& [pointer, unused] : flat.items()) {
      if (pointer.find("/points/") != std::string::npos && pointer.find("/points/1/") == std::string::npos) continue;
      for (const Json& other : others) {
        Json changed = whole;
        changed[Json::json_pointer(pointer)] = other;
        try {
          const bool is_plan = whole.contains("rows");
          const Profile read = is_plan ? sample_profile() : profile_from_json(changed, "fuzz");
          const Plan chosen = is_plan ? plan_from_json(changed, "fuzz") : choose(read, {"a", "b"});
          Chooser(chosen).choose(question.source, question.destination, 1, question.operation, question.bytes);
          explain(read, chosen, question, {"a", "b"});
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::invalid_input) << pointer << " " << other.dump() << ": " << error.what();
        }
      }
    }
  }
}

}  // namespace
}  // namespace waywiser
