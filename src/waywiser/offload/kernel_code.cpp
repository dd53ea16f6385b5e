#include "waywiser/offload/kernel_code.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::string_view spaces = " \t\r\n";
constexpr std::uint32_t most_threads = 1024, most_shared = 48 << 10;
constexpr std::array<std::uint32_t, 3> largest_grid{0x7fffffff, 65535, 65535}, largest_block{1024, 1024, 64};

std::string without_comments(std::string_view code) {
  std::string text;
  while (!code.empty()) {
    const std::size_t begin = std::min(code.find("//"), code.find("/*"));
    text += code.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const bool is_line = code[begin + 1] == '/';
    const std::size_t end = is_line ? code.find('\n', begin) : code.find("*/", begin + 2);
    if (end == std::string_view::npos) break;
    code.remove_prefix(end + (is_line ? 0 : 2));
    text += ' ';
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> words;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(at), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find_first_of(at), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// ".param .u64 .ptr .align 1 name", ".param .align 4 .b8 name[12]".
KernelParameter parameter_of(std::string_view text) {
  KernelParameter parameter;
  if (text.find('[') != std::string_view::npos) return parameter;
  for (const std::string_view word : split(text, spaces)) {
    if (word == ".ptr") parameter.is_pointer = true;
    for (const std::string_view type : {"u64", "s64", "b64", "u32", "s32", "b32", "f32", "f64"})
      if (word.starts_with('.') && word.substr(1) == type) parameter.type = type;
  }
  return parameter;
}

bool takes(const KernelParameter& parameter, KernelArgument::Kind kind) {
  const std::string& type = parameter.type;
  const bool is_any = type.starts_with('b'), is_whole = type.starts_with('u') || type.starts_with('s');
  const bool is_long = type.ends_with("64");
  if (parameter.is_pointer) return kind == KernelArgument::Kind::array;
  switch (kind) {
    case KernelArgument::Kind::array:
    case KernelArgument::Kind::int64: return is_long && (is_any || is_whole);
    case KernelArgument::Kind::int32: return !is_long && (is_any || is_whole);
    case KernelArgument::Kind::float32: return type == "f32" || type == "b32";
    case KernelArgument::Kind::float64: return type == "f64" || type == "b64";
  }
  return false;
}

std::string name_of(KernelArgument::Kind kind) {
  constexpr std::array names{"an array", "an int32", "an int64", "a float32", "a float64"};
  return names[static_cast<std::size_t>(kind)];
}

std::string name_of(const KernelParameter& parameter) {
  if (parameter.is_pointer) return "a pointer";
  return parameter.type.empty() ? "a type that no argument has" : "a ." + parameter.type;
}

void check_lengths(const std::array<std::uint32_t, 3>& lengths, const std::array<std::uint32_t, 3>& most,
                   const std::string& what) {
  for (std::size_t i = 0; i < 3; ++i)
    if (lengths[i] < 1 || lengths[i] > most[i])
      throw Error(ErrorKind::invalid_input, std::string("xyz").substr(i, 1) + " of " + what + " is " +
                                                std::to_string(lengths[i]) + ": from 1 to " + std::to_string(most[i]));
}

}  // namespace

CodeKind kind_of_code(std::string_view code) {
  if (code.starts_with("\x7f"
                       "ELF") ||
      code.starts_with("\x50\xed\x55\xba"))
    return CodeKind::cubin;
  for (;;) {
    code.remove_prefix(std::min(code.find_first_not_of(spaces), code.size()));
    if (!code.starts_with("//")) break;
    code.remove_prefix(std::min(code.find('\n'), code.size()));
  }
  return code.starts_with(".version") ? CodeKind::ptx : CodeKind::source;
}

std::map<std::string, KernelParameters> kernels_of_ptx(std::string_view ptx) {
  const std::string text = without_comments(ptx);
  std::string_view left = text;
  std::map<std::string, KernelParameters> kernels;
  constexpr std::string_view entry = ".entry";
  for (std::size_t at = left.find(entry); at != std::string_view::npos; at = left.find(entry)) {
    left.remove_prefix(at + entry.size());
    const std::size_t body = std::min(left.find('{'), left.size());
    const std::string_view head = left.substr(0, body);
    const std::size_t opens = head.find('('), closes = std::min(head.find(')'), head.size());
    const auto names = split(head.substr(0, opens), spaces);
    if (names.empty()) continue;
    KernelParameters& parameters = kernels[std::string(names.front())];
    parameters.clear();
    if (opens >= closes) continue;
    for (const std::string_view each : split(head.substr(opens + 1, closes - opens - 1), ","))
      if (each.find_first_not_of(spaces) != std::string_view::npos) parameters.push_back(parameter_of(each));
  }
  return kernels;
}

void check(const LaunchShape& shape) {
  check_lengths(shape.grid, largest_grid, "the grid");
  check_lengths(shape.block, largest_block, "a block");
  if (const auto threads = shape.block[0] * shape.block[1] * shape.block[2]; threads > most_threads)
    throw Error(ErrorKind::invalid_input,
                "a block of " + std::to_string(threads) + " threads: at most " + std::to_string(most_threads));
  if (shape.shared > most_shared)
    throw Error(ErrorKind::invalid_input,
                std::to_string(shape.shared) + " bytes of shared memory: at most " + std::to_string(most_shared));
}

void check_arguments(const KernelParameters& parameters, std::span<const KernelArgument> arguments) {
  if (parameters.size() != arguments.size())
    throw Error(ErrorKind::invalid_input, "it takes " + std::to_string(parameters.size()) + " arguments, not " +
                                              std::to_string(arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!takes(parameters[i], arguments[i].kind))
      throw Error(ErrorKind::invalid_input, "argument " + std::to_string(i + 1) + " is " + name_of(arguments[i].kind) +
                                                ", and the kernel takes " + name_of(parameters[i]) + " there");
}

}  // namespace waywiser
