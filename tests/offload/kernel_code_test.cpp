#include "waywiser/offload/kernel_code.hpp"

#include <gtest/gtest.h>

#include <random>

#include "waywiser/base/error.hpp"
#include "waywiser/offload/nvrtc.hpp"

namespace waywiser {
namespace {

constexpr std::string_view axpy_source =
    "extern \"C\" __global__ void axpy(float* y, const float* x, float a, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] += a * x[i];\n}\n"
    "struct Pair { int a, b, c; };\n"
    "extern \"C\" __global__ void others(long long i, double d, Pair p, unsigned short s) {}\n"
    "extern \"C\" __global__ void nothing() {}\n";

std::string refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    return error.what();
  }
  return "";
}

KernelParameters pointers_and_numbers() { return {{"u64", true}, {"u64", false}, {"f32", false}, {"u32", false}}; }

TEST(RemoteKernelCode, SourcePtxAndCubinsAreToldApart) {
  EXPECT_EQ(kind_of_code("__global__ void f() {}"), CodeKind::source);
  EXPECT_EQ(kind_of_code(""), CodeKind::source);
  EXPECT_EQ(kind_of_code("// .version 8.0"), CodeKind::source);
  EXPECT_EQ(kind_of_code("//\n// by a compiler\n\n\t.version 8.0\n"), CodeKind::ptx);
  EXPECT_EQ(kind_of_code("\x7f"
                         "ELF\x02"),
            CodeKind::cubin);
  EXPECT_EQ(kind_of_code("\x50\xed\x55\xba\x01"), CodeKind::cubin);  // a fatbin
}

TEST(RemoteKernelCode, ParametersAreReadFromPtx) {
  const auto kernels = kernels_of_ptx(
      "// .entry not_this(\n.version 9.0\n.target sm_90\n/* .entry nor_this( */\n.visible .entry axpy(\n"
      "\t.param .u64 .ptr .global .align 4 axpy_param_0, // y, and more\n\t.param .u64 axpy_param_1,\n"
      "\t.param .f32 axpy_param_2,\n\t.param .s32 axpy_param_3\n)\n.maxntid 128, 1, 1\n{\n\tret;\n}\n"
      ".entry none()\n{ ret; }\n.entry bare { ret; }\n.entry pair(.param .align 4 .b8 p[12]){ret;}");
  ASSERT_EQ(kernels.size(), 4u);
  const KernelParameters& axpy = kernels.at("axpy");
  ASSERT_EQ(axpy.size(), 4u);
  EXPECT_TRUE(axpy[0].is_pointer);
  EXPECT_FALSE(axpy[1].is_pointer);
  EXPECT_EQ(axpy[1].type + axpy[2].type + axpy[3].type, "u64f32s32");
  EXPECT_TRUE(kernels.at("none").empty() && kernels.at("bare").empty());
  EXPECT_EQ(kernels.at("pair").at(0).type, "");
}

TEST(RemoteKernelCode, AnyTextIsReadWithinItsBounds) {
  std::mt19937 random(1);
  const std::string_view parts[] = {".entry", " ",  "(",  ")", "{",      "}",    ",", "//",
                                    "/*",     "*/", "\n", "f", ".param", ".u64", "["};
  for (int turn = 0; turn < 5000; ++turn) {
    std::string text;
    for (auto count = random() % 20; count > 0; --count) text += parts[random() % std::size(parts)];
    for (const auto& [name, parameters] : kernels_of_ptx(text)) EXPECT_LE(name.size() + parameters.size(), text.size());
    static_cast<void>(kind_of_code(text));
  }
}

TEST(RemoteKernelCode, ArgumentsAreOfTheParametersNumberAndTypes) {
  const KernelParameters parameters = pointers_and_numbers();
  const auto array = KernelArgument::of_array(1);
  const auto whole = KernelArgument::of(std::int32_t{5});
  const auto is_refused = [&](std::vector<KernelArgument> arguments) {
    return refused([&] { check_arguments(parameters, arguments); });
  };
  EXPECT_EQ(is_refused({array, array, KernelArgument::of(2.f), whole}), "");
  EXPECT_EQ(is_refused({array, KernelArgument::of(std::int64_t{5}), KernelArgument::of(2.f), whole}), "");
  EXPECT_EQ(is_refused({array}), "it takes 4 arguments, not 1");
  EXPECT_EQ(is_refused({array, array, KernelArgument::of(2.), whole}),
            "argument 3 is a float64, and the kernel takes a .f32 there");
  EXPECT_EQ(is_refused({whole, array, KernelArgument::of(2.f), whole}),
            "argument 1 is an int32, and the kernel takes a pointer there");
  EXPECT_EQ(is_refused({array, array, KernelArgument::of(2.f), array}),
            "argument 4 is an array, and the kernel takes a .u32 there");
  EXPECT_EQ(refused([&] { check_arguments({{"", false}}, std::vector{whole}); }),
            "argument 1 is an int32, and the kernel takes a type that no argument has there");
}

TEST(RemoteKernelCode, ShapesHaveBounds) {
  EXPECT_EQ(refused([] { check(LaunchShape{{1, 2, 3}, {32, 8, 4}, 1000}); }), "");
  EXPECT_EQ(refused([] { check(LaunchShape{{1, 0, 1}, {1, 1, 1}, 0}); }), "y of the grid is 0: from 1 to 65535");
  EXPECT_EQ(refused([] { check(LaunchShape{{1, 1, 1}, {1, 1, 65}, 0}); }), "z of a block is 65: from 1 to 64");
  EXPECT_EQ(refused([] { check(LaunchShape{{1, 1, 1}, {64, 32, 1}, 0}); }), "a block of 2048 threads: at most 1024");
  EXPECT_EQ(refused([] { check(LaunchShape{{1, 1, 1}, {1, 1, 1}, 49153}); }),
            "49153 bytes of shared memory: at most 49152");
}

TEST(RemoteNvrtc, CompilesOrTellsTheCompilersLines) {
  const Nvrtc fake({WAYWISER_FAKE_NVRTC});
  const std::string ptx = fake.compile("anything", 90);
  EXPECT_NE(ptx.find("--gpu-architecture=compute_90"), std::string::npos) << ptx;
  EXPECT_EQ(kind_of_code(ptx), CodeKind::ptx);
  EXPECT_EQ(refused([&] { static_cast<void>(fake.compile("wrong", 90)); }),
            "it does not compile\nsource.cu(1): error: identifier \"wrong\" is undefined\n\n1 error detected in the "
            "compilation\n");
}

TEST(RemoteNvrtc, WithoutTheLibraryTheErrorSaysSo) {
  try {
    Nvrtc missing({"libno_such_nvrtc.so"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_EQ(std::string(error.what()).find("CUDA source needs NVRTC on the server: "), 0u) << error.what();
  }
}

// The real compiler needs no GPU.
TEST(RemoteNvrtc, TheRealCompilerGivesPtxThatIsUnderstood) {
  std::optional<Nvrtc> real;
  try {
    real.emplace();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const auto kernels = kernels_of_ptx(real->compile(std::string(axpy_source), 90));
  ASSERT_EQ(kernels.size(), 3u);
  const auto array = KernelArgument::of_array(1);
  check_arguments(kernels.at("axpy"),
                  std::vector{array, array, KernelArgument::of(2.f), KernelArgument::of(std::int32_t{5})});
  const KernelParameters& others = kernels.at("others");
  ASSERT_EQ(others.size(), 4u);
  EXPECT_EQ(others[0].type + others[1].type + others[2].type + others[3].type, "u64f64");
  EXPECT_TRUE(kernels.at("nothing").empty());
  EXPECT_NE(refused([&] {
              static_cast<void>(real->compile("__global__ void f() { wrong(); }", 90));
            }).find("it does not compile\nsource.cu(1): error: "),
            std::string::npos);
}

}  // namespace
}  // namespace waywiser
