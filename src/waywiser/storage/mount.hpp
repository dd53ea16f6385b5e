#pragma once

#include <string>

#include "waywiser/storage/storage_file.hpp"

namespace waywiser {

// How plans call the file system of a file: "storage ext4 /". Throws io.
std::string storage_of(const StorageFile& file);
// The part of storage_of() that a table of mounts (/proc/self/mountinfo) says of an absolute path.
std::string mount_of(const std::string& mounts, const std::string& path);

}  // namespace waywiser
