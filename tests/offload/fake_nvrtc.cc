// Stands for libnvrtc: source with the word "wrong" does not compile, source that begins with "read " names a file,
// whose first line an error shows, "endless" never ends, and all other source becomes one kernel, axpy, in whose
// comments the options are.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace {

std::atomic<int> endless{0};

struct Program {
  std::string source, ptx, log;
};

int give_size(const std::string& text, std::size_t* size) {
  *size = text.size() + 1;
  return 0;
}

int give_text(const std::string& text, char* into) {
  std::memcpy(into, text.c_str(), text.size() + 1);
  return 0;
}

}  // namespace

extern "C" {

int nvrtcCreateProgram(Program** made, const char* source, const char*, int, const char* const*, const char* const*) {
  *made = new Program{source, {}, {}};
  return 0;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  if (program->source.find("wrong") != std::string::npos) {
    program->log = "source.cu(1): error: identifier \"wrong\" is undefined\n\n1 error detected in the compilation\n";
    return 6;
  }
  if (program->source.starts_with("read ")) {
    std::ifstream file(program->source.substr(5));
    program->log = file ? "there is a file: " : "no such file";
    std::string line;
    std::getline(file, line);
    program->log += line;
    return 6;
  }
  if (program->source == "endless") ++endless;
  while (program->source == "endless") std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 0; i < count; ++i) program->ptx += std::string("// ") + options[i] + "\n";
  program->ptx +=
      ".version 9.0\n.visible .entry axpy(\n\t.param .u64 .ptr .align 1 y,\n\t.param .u64 x,\n\t.param .f32 a,\n"
      "\t.param .u32 n\n)\n{ ret; }\n";
  return 0;
}

// How many threads are in a compilation that never ends, and only sleep there.
int fake_nvrtc_endless() { return endless; }

int nvrtcGetPTXSize(Program* program, std::size_t* size) { return give_size(program->ptx, size); }
int nvrtcGetPTX(Program* program, char* into) { return give_text(program->ptx, into); }
int nvrtcGetProgramLogSize(Program* program, std::size_t* size) { return give_size(program->log, size); }
int nvrtcGetProgramLog(Program* program, char* into) { return give_text(program->log, into); }

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
}
