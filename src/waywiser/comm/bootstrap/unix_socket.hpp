#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// Sockets with names in a folder; the name may be as long as that of any file. Non-blocking, closed in programs that
// are started. Listens; whatever had this name is replaced at once, never missing in between. `facts`: of the new file.
// Throws io.
Descriptor listen_at(const std::filesystem::path& path, struct stat* facts = nullptr);
// Not open, with errno, when nobody listens there.
Descriptor connect_at(const std::filesystem::path& path);
// The kernel's word: whoever made the other end is of this user.
bool is_of_this_user(const Descriptor& socket);

// While it exists nobody who asks for it too changes what is in the folder; waited for a moment only, as a process that
// is stopped may have it.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  bool held() const noexcept { return held_; }

 private:
  Descriptor folder_;
  bool held_ = false;
};

// Removes sockets from the runtime folder whose processes have ended. Never throws.
void sweep_runtime_folder() noexcept;

}  // namespace waywiser
