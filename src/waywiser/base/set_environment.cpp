#include "waywiser/base/set_environment.hpp"

#include <cstdlib>

namespace waywiser {

void set_environment(const std::string& name, const std::string& value) { ::setenv(name.c_str(), value.c_str(), 1); }

void remove_from_environment(const std::string& name) { ::unsetenv(name.c_str()); }

}  // namespace waywiser
