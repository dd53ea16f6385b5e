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

// Nobody else has the name; the permissions are the usual ones of new files.
Descriptor made(const std::filesystem::path& beside, std::filesystem::path& name) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    name = beside.string() + "." + std::to_string(random());
    Descriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.open() || errno != EEXIST) return file;
  }
  return {};
}

}  // namespace

void ReplacedFile::Removed::operator()(std::filesystem::path* file) const noexcept {
  ::unlink(file->c_str());
  delete file;
}

ReplacedFile::ReplacedFile(const std::filesystem::path& path) : path_(followed(path)) {}
ReplacedFile::~ReplacedFile() = default;

StorageFile ReplacedFile::make() {
  std::filesystem::path name;
  Descriptor file = made(path_, name);
  if (!file.open()) throw Error(ErrorKind::io, path_.string() + ": cannot write it: " + last_system_error());
  temporary_.reset(new std::filesystem::path(name));
  struct stat before{};
  if (::stat(path_.c_str(), &before) == 0) ::fchmod(file.number(), before.st_mode & 07777);
  return {std::move(file), path_.string(), FileUse::write};
}

void ReplacedFile::commit(const StorageFile& file) {
  file.synchronize();
  if (::rename(temporary_->c_str(), path_.c_str()) != 0)
    throw Error(ErrorKind::io, path_.string() + ": cannot replace it: " + last_system_error());
  temporary_.reset();
  const Descriptor folder(::open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open() || ::fsync(folder.number()) != 0)
    throw Error(ErrorKind::io,
                path_.string() + ": it is replaced, but its folder is not on the device yet: " + last_system_error());
}

}  // namespace waywiser
