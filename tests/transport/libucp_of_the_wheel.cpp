#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace waywiser {
namespace {

// The tests use the libucx wheel unless the caller has named another UCX.
class LibucpOfTheWheel : public testing::Environment {
  void SetUp() override {
    if (std::filesystem::exists(WAYWISER_TEST_LIBUCP)) ::setenv("WAYWISER_LIBUCP", WAYWISER_TEST_LIBUCP, 0);
  }
};

[[maybe_unused]] const auto* const environment = testing::AddGlobalTestEnvironment(new LibucpOfTheWheel);

}  // namespace
}  // namespace waywiser
