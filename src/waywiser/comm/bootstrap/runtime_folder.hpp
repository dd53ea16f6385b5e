#pragma once

#include <filesystem>

namespace waywiser {

// This user's folder for sockets of running jobs, which nobody else may open: WAYWISER_RUNTIME_DIR, else
// $XDG_RUNTIME_DIR/waywiser if this user owns it, else /tmp/waywiser-UID. Created if missing. Throws io if others can
// enter it.
std::filesystem::path runtime_folder();

}  // namespace waywiser
