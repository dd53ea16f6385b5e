#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/base/way.hpp"
#include "waywiser/storage/storage_file.hpp"

namespace waywiser {

// Moves parts of files between storage and host memory, one call at a time.
class FileRoad {
 public:
  virtual ~FileRoad() = default;
  // All bytes of all parts. Throws io with path and offset; what was read is no result then.
  virtual void run(FileUse use, const StorageFile& file, std::span<const FilePart> parts) = 0;
};

struct StorageMechanism {
  std::string_view name, words;
  std::optional<std::string> (*why_not)(const StorageFile& file, FileUse use);  // nothing: it serves this file
  std::unique_ptr<FileRoad> (*open)(const Way& way);                            // throws invalid_input
};

// In their order: of equals the first is taken.
std::span<const StorageMechanism> storage_mechanisms();
// Throws invalid_input: there is none of that name.
const StorageMechanism& storage_mechanism(std::string_view name);

StorageMechanism buffered_mechanism();
StorageMechanism mapped_mechanism();
StorageMechanism direct_mechanism();
StorageMechanism io_uring_mechanism();

// Reads the parameters `chunk` and, under the name `second`, how many: threads, or pieces under way.
struct RoadShape {
  Bytes chunk = 0;
  unsigned count = 1;
};
// Throws invalid_input for other parameters.
RoadShape road_shape(const Way& way, std::string_view second, const RoadShape& without);

}  // namespace waywiser
