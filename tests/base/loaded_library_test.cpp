#include "waywiser/base/loaded_library.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace waywiser {
namespace {

TEST(LoadedLibrary, TheLoaderIsAskedAgainOnlyAfterItHasLoadedSomething) {
  const std::string unused = std::filesystem::path(WAYWISER_FAKE_CUFILE).replace_filename("libfake_nvtx.so");
  LoadedLibrary wanted(unused), absent("libwaywiser_that_is_nowhere.so");
  for (int time = 0; time < 100; ++time) {
    EXPECT_FALSE(wanted.is_loaded());
    EXPECT_FALSE(absent.is_loaded());
  }
  EXPECT_EQ(wanted.searches(), 1);
  EXPECT_EQ(absent.searches(), 1);
  ASSERT_NE(::dlopen(unused.c_str(), RTLD_NOW), nullptr);
  for (int time = 0; time < 100; ++time) {
    EXPECT_TRUE(wanted.is_loaded());
    EXPECT_FALSE(absent.is_loaded());
  }
  EXPECT_EQ(wanted.searches(), 2);
  EXPECT_EQ(absent.searches(), 2);
}

}  // namespace
}  // namespace waywiser
