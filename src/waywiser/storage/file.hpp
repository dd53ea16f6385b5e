#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "waywiser/storage/file_part.hpp"
#include "waywiser/storage/file_plan.hpp"

namespace waywiser {

class Platform;

struct FileOptions {
  FilePlan plan = {};                   // chooses the way; FilePlan::usual() is that of WAYWISER_PLAN
  std::string way = {};                 // "io_uring(depth=8)": this way alone
  std::shared_ptr<Platform> gpus = {};  // parts may be in their memory
};

// A file whose bytes go to and from memory the fastest way that was measured. Calls of several threads take turns. What
// is read has been read whole: the end of the file within a part is an error, as every other one io with path and
// offset.
class [[gnu::visibility("default")]] File {
 public:
  // Throws io; invalid_input: neither a file nor a block device.
  static File open(const std::filesystem::path& path, const FileOptions& options = {});
  // A new file in the place of `path` if there is one: until close() without a name, or under a temporary one beside
  // it.
  static File replace(const std::filesystem::path& path, const FileOptions& options = {});
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();  // what was written and not closed is discarded

  // From now on parts may be in the memory of these GPUs.
  void use_gpus(std::shared_ptr<Platform> gpus);

  Bytes size() const;
  void read(Bytes offset, Region into);
  void write(Bytes offset, ConstRegion from);
  // Many at once.
  void read(std::span<const FilePart> parts);
  void write(std::span<const FilePart> parts);
  // A written file is on the device under its own name then, or throws io and what was there before stays.
  void close();
  void discard() noexcept;  // as close(), it waits for a call of another thread

  // The way that a read of so many bytes at `offset` into memory of `place`, or a write, takes.
  std::string way(Bytes offset, Bytes bytes, Place place = host(0)) const;
  // For a measurement: the next read comes from the device. False: this file system keeps pages in memory.
  bool drop_cache() const;
  // For a measurement: what was written is on the device.
  void synchronize() const;

 private:
  struct Opened;
  struct State;
  explicit File(std::unique_ptr<Opened> opened);
  template <typename Call>
  auto in_turn(Call call) const;  // throws invalid_input: it is closed
  std::unique_ptr<Opened> taken() noexcept;
  void run(bool writes, std::span<const FilePart> parts);

  std::unique_ptr<State> state_;
};

}  // namespace waywiser
