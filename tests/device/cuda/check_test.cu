#include <gtest/gtest.h>

#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser {
namespace {

std::string words_of(cudaError_t result) {
  try {
    check_cuda(result, "a kernel");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CheckCuda, ABuildWithoutCodeForTheGpuIsNamed) {
  EXPECT_EQ(words_of(cudaSuccess), "");
  EXPECT_NE(words_of(cudaErrorNoKernelImageForDevice).find("no code for this GPU"), std::string::npos);
  EXPECT_EQ(words_of(cudaErrorInvalidValue).find("no code for this GPU"), std::string::npos);
}

}  // namespace
}  // namespace waywiser
