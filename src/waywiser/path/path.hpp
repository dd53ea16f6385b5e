#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "waywiser/base/json.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

// One way for bytes to get from one memory to another: a value. Parameters are by name, as text; sizes as in
// parse_bytes. docs/paths.md lists the parameters of each mechanism.
struct Path {
  std::string mechanism;  // a row of mechanisms(): "copy_engine"
  Place source;
  Place destination;
  int processes = 1;  // 2: the source's and the destination's owner are two processes of this machine
  std::map<std::string, std::string> parameters;

  bool operator==(const Path&) const = default;

  // The value of a parameter. Throws invalid_input when it is not there or not a number in range.
  std::string_view parameter(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;
  Bytes bytes(std::string_view name, Bytes least, Bytes most) const;
  bool has(std::string_view name) const;
};

// "host_staged(chunk=2M,depth=4,variant=pipelined)": mechanism and parameters, without the pair.
std::string label(const Path& path);
// "gpu0>gpu1", or "gpu0>>gpu1" between two processes.
std::string pair_text(const Path& path);

Json to_json(const Path& path);
Path path_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
