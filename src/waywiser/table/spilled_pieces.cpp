#include "waywiser/table/spilled_pieces.hpp"

#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {

SpillFolder::SpillFolder(const std::filesystem::path& parent) {
  std::string name = (parent / "waywiser-spill-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error(ErrorKind::io, name + ": " + std::generic_category().message(errno));
  path_ = name;
}

SpillFolder::~SpillFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

SpilledPieces::SpilledPieces(std::filesystem::path file) : path_(std::move(file)) {
  writing_ = File::replace(path_, {FilePlan::usual(), {}, {}});
}

Bytes SpilledPieces::add(ConstRegion piece) {
  if (piece.bytes > 0) writing_->write(end_, piece);
  return std::exchange(end_, end_ + piece.bytes);
}

void SpilledPieces::read(Bytes begin, Region into) {
  if (!reading_) {
    writing_->close();
    reading_ = File::open(path_, {FilePlan::usual(), {}, {}});
  }
  if (into.bytes > 0) reading_->read(begin, into);
}

}  // namespace waywiser
