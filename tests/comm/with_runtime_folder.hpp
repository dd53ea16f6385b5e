#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace waywiser {

// A runtime folder of its own, as another process of this user may test at the same time.
class WithRuntimeFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "waywiser-test-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    ::setenv("WAYWISER_RUNTIME_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("WAYWISER_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
};

}  // namespace waywiser
