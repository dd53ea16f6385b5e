#include "waywiser/comm/bootstrap/meeting_socket.hpp"

#include <unistd.h>

#include "waywiser/base/error.hpp"
#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/comm/bootstrap/runtime_folder.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

struct stat facts_of(const std::filesystem::path& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return {};
  return facts;
}

// The inode of a deleted file may be reused, but not with the same creation time.
bool same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

}  // namespace

// Launchers choose the names of jobs: any characters, any length.
std::filesystem::path meeting_path(const std::string& job) {
  FingerprintHash hash;
  hash.add(job);
  return runtime_folder() / ("job-" + hash.hexadecimal() + ".sock");
}

MeetingSocket::MeetingSocket(const std::string& job) : path_(meeting_path(job)) {
  const FolderLock lock(path_.parent_path());  // a sweeper may have seen that nobody listens at the old one
  listener_ = listen_at(path_, &facts_);
}

MeetingSocket::~MeetingSocket() {
  const FolderLock lock(path_.parent_path());
  if (same(facts_of(path_), facts_)) ::unlink(path_.c_str());
}

MeetingVisit::MeetingVisit(const std::string& job)
    : path_(meeting_path(job)), facts_(facts_of(path_)), line_(connect_at(path_)) {
  if (line_.open() && !is_of_this_user(line_)) throw Error(ErrorKind::io, "another user listens at " + path_.string());
}

bool MeetingVisit::is_outdated() const {
  const struct stat now = facts_of(path_);
  return now.st_ino != 0 && !same(now, facts_);
}

}  // namespace waywiser
