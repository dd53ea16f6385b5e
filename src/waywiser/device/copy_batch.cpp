#include "waywiser/device/copy_batch.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

void CopyBatch::add(Region to, ConstRegion from) {
  check_put(to, from);
  if (to.bytes == 0) return;
  if (!to_.empty() && to_.back().place == to.place && from_.back().place == from.place &&
      to_.back().data + to_.back().bytes == to.data && from_.back().data + from_.back().bytes == from.data) {
    to_.back().bytes += to.bytes;
    from_.back().bytes += from.bytes;
    return;
  }
  to_.push_back(to);
  from_.push_back(from);
}

void CopyBatch::enqueue(Stream& stream) const {
  if (stream.capturing()) throw Error(ErrorKind::unavailable, "a batch of copies, which no graph can capture");
  if (to_.empty()) return;
  if (stream.native() != nullptr) return copy_batch_by_cuda(stream, to_, from_);
  for (std::size_t i = 0; i < to_.size(); ++i) stream.copy(to_[i], from_[i]);
}

std::optional<std::string> why_no_copy_batches(const Platform& platform) {
  if (platform.backend() == "cuda") return why_no_copy_batches_of_cuda();
  return platform.gpu_count() == 0 ? std::optional<std::string>("there is no GPU") : std::nullopt;
}

}  // namespace waywiser
