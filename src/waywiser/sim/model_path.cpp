#include "waywiser/sim/model_path.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {

std::string_view ModelPath::parameter(std::string_view name) const {
  read_.emplace(name);
  return path_.parameter(name);
}

std::int64_t ModelPath::integer(std::string_view name, std::int64_t least, std::int64_t most) const {
  read_.emplace(name);
  return path_.integer(name, least, most);
}

Bytes ModelPath::bytes(std::string_view name, Bytes least, Bytes most) const {
  read_.emplace(name);
  return path_.bytes(name, least, most);
}

std::string_view ModelPath::one_of(std::string_view name, std::initializer_list<std::string_view> values) const {
  const std::string_view value = parameter(name);
  if (std::ranges::find(values, value) != values.end()) return value;
  std::string all;
  for (const std::string_view one : values) all += (all.empty() ? "" : ", ") + std::string(one);
  throw Error(ErrorKind::invalid_input, label(path_) + ": parameter '" + std::string(name) + "' must be one of " + all);
}

void ModelPath::hand_on(std::string_view prefix) const {
  for (const auto& [name, value] : path_.parameters)
    if (name.starts_with(prefix)) read_.insert(name);
}

std::vector<std::string> ModelPath::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : path_.parameters)
    if (!read_.contains(name)) names.push_back(name);
  return names;
}

}  // namespace waywiser::sim
