#include <gtest/gtest.h>

#include "tests/c/error_text.hpp"
#include "tests/storage/storage_folder.hpp"
#include "waywiser/c/waywiser.h"

namespace waywiser {
namespace {

TEST(CFiles, AreReplacedWhenTheyAreClosed) {
  const StorageFolder folder;
  const std::string path = (folder / "a").string();
  std::vector<std::byte> bytes = storage_bytes(10'000), found(bytes.size());
  put_file(path, storage_bytes(5, 2));
  for (const bool closes : {false, true}) {
    ww_file* file = nullptr;
    ASSERT_EQ(ww_file_replace(path.c_str(), nullptr, &file), WW_OK) << c_error_text();
    EXPECT_EQ(ww_file_write(file, 0, bytes.data(), bytes.size()), WW_OK) << c_error_text();
    EXPECT_EQ(closes ? ww_file_close(file) : WW_OK, WW_OK) << c_error_text();
    ww_file_free(file);
    EXPECT_EQ(bytes_of_file(path).size(), closes ? bytes.size() : 5u);
  }
  ww_file* file = nullptr;
  ASSERT_EQ(ww_file_open(path.c_str(), "buffered(threads=2)", &file), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_read(file, 0, found.data(), found.size()), WW_OK) << c_error_text();
  EXPECT_EQ(found, bytes);
  EXPECT_EQ(ww_file_read(file, 1, found.data(), found.size()), WW_IO);
  EXPECT_NE(c_error_text().find("the file ends at 10000"), std::string::npos) << c_error_text();
  EXPECT_EQ(ww_file_write(file, 0, bytes.data(), 1), WW_INVALID_INPUT);
  ww_file_free(file);
}

TEST(CFiles, MovePartsOfAHostAndOfAGpuAtOnce) {
  const StorageFolder folder;
  const std::string path = (folder / "a").string();
  std::vector<std::byte> bytes = storage_bytes(3'000'000), here(1000), there(bytes.size() - 1000);
  ww_join_options options{};
  options.size = sizeof options;
  options.virtual_gpus = 1;
  ww_group* group = nullptr;
  ASSERT_EQ(ww_join(&options, &group), WW_OK) << c_error_text();
  void* on_gpu = nullptr;
  ASSERT_EQ(ww_gpu_allocate(group, 0, there.size(), &on_gpu), WW_OK) << c_error_text();
  EXPECT_EQ(ww_gpu_copy(group, on_gpu, bytes.data() + 1000, there.size()), WW_OK) << c_error_text();
  const ww_file_part given[] = {{0, bytes.data(), 1000}, {1000, on_gpu, there.size()}};
  ww_file* file = nullptr;
  ASSERT_EQ(ww_file_replace(path.c_str(), nullptr, &file), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_use_gpus(file, group), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_write_many(file, given, 2), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_close(file), WW_OK) << c_error_text();
  ww_file_free(file);
  EXPECT_EQ(bytes_of_file(path), bytes);

  const ww_file_part wanted[] = {{0, on_gpu, there.size()}, {77, here.data(), here.size()}};
  ASSERT_EQ(ww_file_open(path.c_str(), nullptr, &file), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_use_gpus(file, group), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_read_many(file, wanted, 2), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_read_many(file, nullptr, 0), WW_OK) << c_error_text();
  EXPECT_EQ(ww_file_read_many(file, nullptr, 1), WW_INVALID_INPUT);
  ww_file_free(file);
  EXPECT_EQ(ww_gpu_copy(group, there.data(), on_gpu, there.size()), WW_OK) << c_error_text();
  EXPECT_TRUE(std::equal(there.begin(), there.end(), bytes.begin()));
  EXPECT_TRUE(std::equal(here.begin(), here.end(), bytes.begin() + 77));
  EXPECT_EQ(ww_gpu_free(group, on_gpu), WW_OK) << c_error_text();
  EXPECT_EQ(ww_close(group), WW_OK) << c_error_text();
  ww_group_free(group);
}

TEST(CFiles, RefuseWhatIsNoArgument) {
  ww_file* file = nullptr;
  uint64_t bytes = 0;
  EXPECT_EQ(ww_file_open(nullptr, nullptr, &file), WW_INVALID_INPUT);
  EXPECT_EQ(ww_file_open("/none", nullptr, nullptr), WW_INVALID_INPUT);
  EXPECT_EQ(ww_file_open("/none", nullptr, &file), WW_IO);
  EXPECT_EQ(ww_file_size(nullptr, &bytes), WW_INVALID_INPUT);
  EXPECT_EQ(ww_file_read(nullptr, 0, &bytes, 1), WW_INVALID_INPUT);
  EXPECT_EQ(ww_file_use_gpus(nullptr, nullptr), WW_INVALID_INPUT);
  EXPECT_EQ(ww_file_close(nullptr), WW_INVALID_INPUT);
  ww_file_free(nullptr);
}

}  // namespace
}  // namespace waywiser
