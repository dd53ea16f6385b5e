#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/base/way.hpp"
#include "waywiser/storage/pieces.hpp"
#include "waywiser/storage/storage_file.hpp"

namespace waywiser {

// Moves parts of one file between storage and memory, one call at a time.
class FileRoad {
 public:
  virtual ~FileRoad() = default;
  // All bytes of all parts. Throws io with path and offset; what was read is no result then.
  void run(FileUse use, const StorageFile& file, std::span<const FilePart> parts);

  // The same in steps: the pieces in which it moves parts; those that it can take; what no piece has.
  virtual std::vector<FilePart> pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts) const = 0;
  // Throws as run(); nobody takes any more of the pieces then.
  virtual void move(FileUse use, const StorageFile& file, PieceQueue& pieces) = 0;
  virtual void finish(FileUse /*use*/, const StorageFile& /*file*/, std::span<const FilePart> /*parts*/) {}
};

// Whose memory the parts of a call are in.
enum class FileEnd { host, gpu };

struct StorageMechanism {
  std::string_view name, words;
  std::optional<std::string> (*why_not)(const StorageFile& file, FileUse use);  // nothing: it serves this file
  std::unique_ptr<FileRoad> (*open)(const Way& way);                            // throws invalid_input
  FileEnd end = FileEnd::host;  // those of hosts serve GPUs by copies through host memory
};

// How a way serves GPUs: through so many lanes, each with a road and buffers of its own. Throws invalid_input.
struct Bounce {
  Bytes bytes = 0;  // of a buffer
  unsigned lanes = 1;
};
Bounce bounce_of(const Way& way);

// In their order: of equals the first is taken.
std::span<const StorageMechanism> storage_mechanisms();
// Throws invalid_input: there is none of that name.
const StorageMechanism& storage_mechanism(std::string_view name);

StorageMechanism buffered_mechanism();
StorageMechanism mapped_mechanism();
StorageMechanism direct_mechanism();
StorageMechanism io_uring_mechanism();
StorageMechanism cufile_mechanism();

// Reads the parameters `chunk` and, under the name `second`, how many: threads, or pieces under way; where GPUs go
// through host memory, `bounce` and `lanes` are theirs.
struct RoadShape {
  Bytes chunk = 0;
  unsigned count = 1;
};
// Throws invalid_input for other parameters.
RoadShape road_shape(const Way& way, std::string_view second, const RoadShape& without);

}  // namespace waywiser
