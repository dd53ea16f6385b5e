#include "waywiser/offload/without_files.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/offload/nvrtc.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 60;

// 0, or the errno of a call that returned a negative number.
int problem_of(long result) { return result < 0 ? errno : 0; }

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "waywiser-files-XXXXXX").string();
    path = ::mkdtemp(name.data());
    std::ofstream(path / "secret") << "word_of_a_secret = 1;\n";
    if (::mkfifo((path / "fifo").c_str(), 0600) != 0) throw std::runtime_error("no FIFO");
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

TEST(WithoutFiles, WhatExistsAndWhatDoesNotLookTheSame) {
  const TemporaryFolder folder;
  std::vector<int> problems;
  run_without_files(
      [&] {
        for (const char* name : {"secret", "fifo", "nothing", "."}) {
          const std::string path = (folder.path / name).string();
          struct stat facts{};
          std::array<char, 100> text{};
          problems.push_back(problem_of(::open(path.c_str(), O_RDONLY)));
          problems.push_back(problem_of(::openat(AT_FDCWD, path.c_str(), O_RDWR)));
          problems.push_back(problem_of(::stat(path.c_str(), &facts)));
          problems.push_back(problem_of(::lstat(path.c_str(), &facts)));
          problems.push_back(problem_of(::access(path.c_str(), R_OK)));
          problems.push_back(problem_of(::readlink(path.c_str(), text.data(), text.size())));
          problems.push_back(problem_of(::unlink(path.c_str())));
          problems.push_back(problem_of(::mkdir((path + "-new").c_str(), 0700)));
          problems.push_back(problem_of(::opendir(path.c_str()) == nullptr ? -1 : 0));
          problems.push_back(problem_of(::getcwd(text.data(), text.size()) == nullptr ? -1 : 0));
        }
        problems.push_back(problem_of(::socket(AF_INET, SOCK_STREAM, 0)));
        std::array<char*, 1> none{};
        problems.push_back(::execve("/bin/true", none.data(), none.data()) < 0 ? errno : 0);
      },
      Deadline::in(patience));
  EXPECT_EQ(problems, std::vector<int>(42, ENOENT));
  EXPECT_TRUE(std::ifstream(folder.path / "secret").good());  // here there are files
}

TEST(WithoutFiles, ThrowsWhatTheWorkThrowsAndEndsAtTheDeadline) {
  EXPECT_EQ(refusal_of([] {
              run_without_files([] { throw Error(ErrorKind::invalid_input, "words"); }, Deadline::in(patience));
            }),
            "words");
  const auto go = std::make_shared<std::promise<void>>(), gone = std::make_shared<std::promise<void>>();
  try {
    run_without_files(
        [=] {
          go->get_future().wait();
          gone->set_value();
        },
        Deadline::in(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
  }
  go->set_value();
  gone->get_future().wait();
}

TEST(RemoteNvrtc, ASourceLearnsNothingOfFiles) {
  const TemporaryFolder folder;
  const Nvrtc fake({WAYWISER_FAKE_NVRTC});
  for (const char* name : {"secret", "fifo", "nothing"})
    EXPECT_EQ(refusal_of([&] { static_cast<void>(fake.compile("read " + (folder.path / name).string(), 90)); }),
              "it does not compile\nno such file");
}

// The thread stays: a test that forks later must not meet it while it holds a lock of an allocator.
void wait_until_one_only_sleeps() {
  void* const fake = ::dlopen(WAYWISER_FAKE_NVRTC, RTLD_NOW);
  ASSERT_NE(fake, nullptr) << ::dlerror();
  const auto endless = reinterpret_cast<int (*)()>(::dlsym(fake, "fake_nvrtc_endless"));
  ASSERT_NE(endless, nullptr);
  const Deadline deadline = Deadline::in(patience);
  while (endless() == 0) {
    ASSERT_FALSE(deadline.passed());
    ::sched_yield();
  }
}

TEST(RemoteNvrtc, ASourceThatDoesNotEndIsTheLastOne) {
  const Nvrtc fake({WAYWISER_FAKE_NVRTC});
  EXPECT_EQ(refusal_of([&] { static_cast<void>(fake.compile("endless", 90, 0)); }),
            "it has not compiled within 0.00 s");
  EXPECT_EQ(refusal_of([&] { static_cast<void>(fake.compile("anything", 90)); }),
            "an earlier source of this client is still being compiled");
  wait_until_one_only_sleeps();
}

// Each includes the file @, or says "exists" if the preprocessor finds it.
constexpr std::array<std::string_view, 22> ways_to_a_file{
    "#include \"@\"\n",
    "#include <@>\n",
    "%:include \"@\"\n",
    "?\?=include \"@\"\n",
    "#inc\\\nlude \"@\"\n",
    "#inc?\?/\nlude \"@\"\n",
    "/**/ # /* x */ include \"@\"\n",
    "#define X \"@\"\n#include X\n",
    "#include_next \"@\"\n",
    "#import \"@\"\n",
    "__constant__ char a[] = {\n#embed \"@\"\n};\n",
    "#\\u0069nclude \"@\"\n",
    "#line 1 \"@\"\n#include __FILE__\n",
    "\f#\vinclude \"@\"\n",
    "#if __has_include(\"@\")\n#error exists\n#endif\n",
    "#if __has_include(<@>)\n#error exists\n#endif\n",
    "#define C(a, b) a##b\n#if C(__has_, include)(\"@\")\n#error exists\n#endif\n",
    "#define C(a, b) a##b\n#if C(__has_, embed)(\"@\")\n#error exists\n#endif\n",
    "#pragma GCC dependency \"@\"\n",
    "import \"@\";\n",
    "#line 1 \"@\"\nnone x;\n",
    "extern \"C\" __global__ void f() { asm(\".include \\\"@\\\"\"); asm(\"#include \\\"@\\\"\"); }\n",
};

// The real compiler needs no GPU.
TEST(RemoteNvrtc, TheRealCompilerLearnsNothingOfFiles) {
  std::optional<Nvrtc> real;
  try {
    real.emplace();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const TemporaryFolder folder;
  const auto told = [&](std::string_view way, const std::string& path) {
    std::string source(way), ptx;
    for (auto at = source.find('@'); at != std::string::npos; at = source.find('@')) source.replace(at, 1, path);
    const std::string words = refusal_of([&] { ptx = real->compile(source, 90); });
    return words + ptx;
  };
  for (const std::string_view way : ways_to_a_file) {
    const std::string of_secret = told(way, (folder.path / "secret").string());
    EXPECT_EQ(of_secret.find("word_of_a_secret"), std::string::npos) << of_secret;
    EXPECT_EQ(of_secret.find("error: #error directive: exists"), std::string::npos) << of_secret;
    std::string of_none = told(way, (folder.path / "sacret").string());  // which does not exist
    for (auto at = of_none.find("sacret"); at != std::string::npos; at = of_none.find("sacret")) of_none[at + 1] = 'e';
    EXPECT_EQ(of_secret, of_none) << way;
    static_cast<void>(told(way, (folder.path / "fifo").string()));
  }
}

}  // namespace
}  // namespace waywiser
