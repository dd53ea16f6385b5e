#include "waywiser/base/environment.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace waywiser {
namespace {

constexpr std::array<std::string_view, 12> of_a_rank{
    "WAYWISER_RANK", "WAYWISER_SIZE", "WAYWISER_LOCAL_RANK", "WAYWISER_LOCAL_SIZE",
    "WAYWISER_JOB",  "WAYWISER_ROOT", "WAYWISER_SECRET",     "RANK",
    "WORLD_SIZE",    "LOCAL_RANK",    "LOCAL_WORLD_SIZE",    "SLURM_PROCID"};
constexpr std::array<std::string_view, 3> of_mpi{"OMPI_COMM_WORLD_", "PMIX_", "PMI_"};

}  // namespace

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::string> library_override(std::string_view library) {
  std::string name = "WAYWISER_LIB";
  for (const char c : library) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return environment(name);
}

bool tells_of_a_job(std::string_view name) noexcept {
  return std::ranges::count(of_a_rank, name) != 0 ||
         std::ranges::any_of(of_mpi, [&](std::string_view start) { return name.starts_with(start); });
}

}  // namespace waywiser
