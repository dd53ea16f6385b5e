#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// Listens at a named socket in a folder; the name may be as long as any file name. Non-blocking, close-on-exec. It
// replaces a file of that name atomically. `facts`: of the new file. Throws io.
Descriptor listen_at(const std::filesystem::path& path, struct stat* facts = nullptr);
// Not open, with errno set, if nobody listens there.
Descriptor connect_at(const std::filesystem::path& path);
// Whether the kernel says that this user made the other end.
bool is_of_this_user(const Descriptor& socket);

// While this object lives, no other holder of the lock changes the folder. The wait for the lock is short, since a
// stopped process may hold it.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  bool held() const noexcept { return held_; }

 private:
  Descriptor folder_;
  bool held_ = false;
};

// Removes sockets of ended processes from the runtime folder. Never throws.
void sweep_runtime_folder() noexcept;

}  // namespace waywiser
