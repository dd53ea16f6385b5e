#include "apps/navier_stokes/output/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <waywiser/base/error.hpp>

namespace flow {
namespace {

[[noreturn]] void fail(const std::string& what, const std::filesystem::path& file) {
  throw waywiser::Error(waywiser::ErrorKind::io, what + " " + file.string() + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& file, int flags) : number_(::open(file.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) fail("cannot open", file);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(number_); }

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

void write_durably(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::path made = file;
  made += ".new";
  {
    const Descriptor out(made, O_WRONLY | O_CREAT | O_TRUNC);
    while (!text.empty()) {
      const ssize_t written = ::write(out.number(), text.data(), text.size());
      if (written < 0 && errno != EINTR) fail("cannot write", made);
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(out.number()) != 0) fail("cannot write", made);
  }
  if (::rename(made.c_str(), file.c_str()) != 0) fail("cannot replace", file);
  const Descriptor folder(file.has_parent_path() ? file.parent_path() : ".", O_RDONLY | O_DIRECTORY);
  if (::fsync(folder.number()) != 0) fail("cannot write", file.parent_path());
}

std::string read_file(const std::filesystem::path& file) {
  const Descriptor in(file, O_RDONLY);
  std::string text;
  char piece[1 << 16];
  for (;;) {
    const ssize_t got = ::read(in.number(), piece, sizeof piece);
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) fail("cannot read", file);
    if (got > 0) text.append(piece, static_cast<std::size_t>(got));
  }
}

}  // namespace flow
