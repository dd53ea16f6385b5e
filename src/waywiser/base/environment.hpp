#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace waywiser {

// The only reader of environment variables. WAYWISER_* names are listed in environment.cpp.
std::optional<std::string> environment(std::string_view name);

// WAYWISER_LIBUCP: full path of the libucp.so.0 to open; WAYWISER_LIBUCX: folder of the wheel libucx's, which a Python
// program names. WAYWISER_LIBGDRAPI, WAYWISER_LIBNVML likewise.
std::optional<std::string> library_override(std::string_view library);

// Whether a launcher (mpirun, srun, torchrun, `waywiser run`) uses this variable to tell a rank its number or job;
// processes that a rank starts must not get it.
bool tells_of_a_job(std::string_view name) noexcept;

}  // namespace waywiser
