#include "waywiser/comm/bootstrap/runtime_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// Whether nobody else can replace the folder's contents.
bool is_this_users_own(const std::string& folder) {
  struct stat facts{};
  return ::stat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid() &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::filesystem::path chosen_folder() {
  if (const auto named = environment("WAYWISER_RUNTIME_DIR")) return *named;
  // After `su` the folder may belong to another user.
  if (const auto session = environment("XDG_RUNTIME_DIR"); session && is_this_users_own(*session))
    return std::filesystem::path(*session) / "waywiser";
  return "/tmp/waywiser-" + std::to_string(::geteuid());
}

}  // namespace

std::filesystem::path runtime_folder() {
  const std::filesystem::path folder = chosen_folder();
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::io, folder.string() + why + "; WAYWISER_RUNTIME_DIR names another one");
  };
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) refuse(": " + last_system_error());
  struct stat facts{};
  if (::lstat(folder.c_str(), &facts) != 0) refuse(": " + last_system_error());
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse(" must be your own folder, which nobody else can enter (chmod 700)");
  return folder;
}

}  // namespace waywiser
