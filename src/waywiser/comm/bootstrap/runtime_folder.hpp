#pragma once

#include <filesystem>

namespace waywiser {

// The folder of this user for sockets of running jobs, which nobody else may open: WAYWISER_RUNTIME_DIR, else
// $XDG_RUNTIME_DIR/waywiser where that is this user's own, else /tmp/waywiser-UID. Made when it is not there. Throws io
// when others can enter it.
std::filesystem::path runtime_folder();

}  // namespace waywiser
