#include "waywiser/storage/replaced_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

std::filesystem::path followed(const std::filesystem::path& path) {
  std::error_code problem;
  const auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path), problem);
  if (problem) throw Error(ErrorKind::io, path.string() + ": " + problem.message());
  if (std::filesystem::exists(found, problem) && !std::filesystem::is_regular_file(found, problem))
    refuse_input(path.string(), "is no file that can be replaced");
  return found;
}

std::string by_number(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

// Calls `take` with names beside the file until one is nobody's; the result of the last call.
template <typename Take>
auto take_name(const std::filesystem::path& beside, Take take) {
  std::random_device random;
  for (int tries = 1;; ++tries) {
    auto taken = take(std::filesystem::path(beside.string() + "." + std::to_string(random())));
    if (taken || errno != EEXIST || tries == 100) return taken;
  }
}

// A file without a name, which the system removes with the process; none where the file system has no such files.
Descriptor unnamed(const std::filesystem::path& folder) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  return file.open() && ::access(by_number(file.number()).c_str(), F_OK) == 0 ? std::move(file) : Descriptor();
}

}  // namespace

void ReplacedFile::Removed::operator()(std::filesystem::path* file) const noexcept {
  ::unlink(file->c_str());
  delete file;
}

ReplacedFile::ReplacedFile(const std::filesystem::path& path) : path_(followed(path)) {}
ReplacedFile::~ReplacedFile() = default;

StorageFile ReplacedFile::make(bool named) {
  Descriptor file = named ? Descriptor() : unnamed(path_.parent_path());
  if (!file.open())
    take_name(path_, [&](const std::filesystem::path& name) {
      file = Descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (file.open()) temporary_.reset(new std::filesystem::path(name));
      return file.open();
    });
  if (!file.open()) throw Error(ErrorKind::io, path_.string() + ": cannot write it: " + last_system_error());
  struct stat before{};
  if (::stat(path_.c_str(), &before) == 0) ::fchmod(file.number(), before.st_mode & 07777);
  return {std::move(file), path_.string(), FileUse::write};
}

void ReplacedFile::commit(const StorageFile& file) {
  file.synchronize();
  const std::string number = by_number(file.cached_descriptor());
  const auto name_it = [&](const std::filesystem::path& name) {
    const bool linked = ::linkat(AT_FDCWD, number.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    if (linked) temporary_.reset(new std::filesystem::path(name));
    return linked;
  };
  if (!temporary_ && !take_name(path_, name_it))
    throw Error(ErrorKind::io, path_.string() + ": cannot name what was written: " + last_system_error());
  if (::rename(temporary_->c_str(), path_.c_str()) != 0)
    throw Error(ErrorKind::io, path_.string() + ": cannot replace it: " + last_system_error());
  temporary_.reset();
  const Descriptor folder(::open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open() || ::fsync(folder.number()) != 0)
    throw Error(ErrorKind::io,
                path_.string() + ": it is replaced, but its folder is not on the device yet: " + last_system_error());
}

}  // namespace waywiser
