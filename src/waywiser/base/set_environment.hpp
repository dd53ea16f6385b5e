#pragma once

#include <string>

namespace waywiser {

// For a library that has no other configuration; call it before other threads read the environment.
void set_environment(const std::string& name, const std::string& value);
void remove_from_environment(const std::string& name);

}  // namespace waywiser
