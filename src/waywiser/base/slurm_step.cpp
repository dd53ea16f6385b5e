#include "waywiser/base/slurm_step.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ranges>
#include <string>

#include "waywiser/base/ancestors.hpp"

namespace waywiser {
namespace {

constexpr std::uint32_t first_special_step = 4294967290;  // interactive; then batch, external, pending
constexpr std::uint32_t most_of_a_list = 1 << 20;

// Empty if `text` is anything but a number.
std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<std::uint32_t> number_of(const Variables& variables, std::string_view name) {
  const auto text = variables(name);
  return text ? number_in(*text) : std::nullopt;
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "2(x3)" is {2, 3}, "2" is {2, 1}.
std::optional<std::pair<std::uint32_t, std::uint32_t>> tasks_and_machines(std::string_view part) {
  const std::size_t bracket = part.find("(x");
  const auto tasks = number_in(part.substr(0, bracket));
  if (bracket == part.npos) return tasks ? std::optional(std::pair(*tasks, 1U)) : std::nullopt;
  if (!part.ends_with(')')) return {};
  const auto machines = number_in(part.substr(bracket + 2, part.size() - bracket - 3));
  if (!tasks || !machines) return {};
  return std::pair(*tasks, *machines);
}

// slurmd writes the list of a machine's tasks anew for whatever it starts. That of a batch script is "0".
bool is_listed(const Variables& variables) {
  const auto list = variables("SLURM_GTIDS"), number = variables("SLURM_PROCID");
  if (!list || !number || variables("SLURM_HET_SIZE")) return true;
  const auto parts = parts_of(*list);
  const int here = slurm_tasks_here(variables);
  return std::ranges::count(parts, *number) != 0 && (here == 0 || std::ssize(parts) == here);
}

// slurmstepd calls itself "slurmstepd: [JOB.STEP]"; STEP is a word for what srun has not started.
bool is_step_of(const Variables& variables, std::string_view command) {
  const std::size_t begin = command.find('['), dot = command.find('.', begin), end = command.find(']', begin);
  if (begin == command.npos || dot == command.npos || end == command.npos || dot > end) return true;
  const auto step = number_in(command.substr(dot + 1, end - dot - 1));
  if (!step) return false;
  if (variables("SLURM_HET_SIZE")) return true;  // its parts have job numbers of their own
  return command.substr(begin + 1, dot - begin - 1) == variables("SLURM_JOB_ID").value_or("") &&
         step == number_of(variables, "SLURM_STEP_ID");
}

std::string_view program_of(std::string_view command) {
  const std::string_view word = command.substr(0, command.find(' '));
  return word.substr(word.rfind('/') + 1);
}

bool is_slurm_daemon(const Ancestor& ancestor) { return program_of(ancestor.command).starts_with("slurmstepd"); }

}  // namespace

bool is_task_of_srun(const Variables& variables, const std::vector<Ancestor>& ancestors) {
  const auto step = number_of(variables, "SLURM_STEP_ID");
  if (!step || *step >= first_special_step || !is_listed(variables)) return false;
  const auto daemon = std::ranges::find_if(ancestors, is_slurm_daemon);
  return daemon == ancestors.end() || is_step_of(variables, daemon->command);
}

int slurm_tasks_here(const Variables& variables) {
  const std::uint32_t machine = number_of(variables, "SLURM_NODEID").value_or(0);
  std::uint64_t before = 0;
  const std::string list = variables("SLURM_STEP_TASKS_PER_NODE").value_or("");
  for (const std::string_view part : parts_of(list)) {
    const auto counts = tasks_and_machines(part);
    if (!counts || counts->first > most_of_a_list) return 0;
    before += counts->second;
    if (machine < before) return static_cast<int>(counts->first);
  }
  return 0;
}

bool is_batch_daemon(const Ancestor& ancestor) {
  return is_slurm_daemon(ancestor) || program_of(ancestor.command) == "pbs_mom";
}

}  // namespace waywiser
