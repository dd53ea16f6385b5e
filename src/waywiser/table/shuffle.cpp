#include "waywiser/table/shuffle.hpp"

#include <utility>

#include "waywiser/group/inside.hpp"
#include "waywiser/table/shuffle_work.hpp"

namespace waywiser {

Shuffle::Shuffle(Group& group, const ArrowSchema& schema, ShuffleOptions options)
    : Shuffle(group, [&]() -> const ArrowSchema& { return schema; }, std::move(options)) {}

Shuffle::Shuffle(Group& group, const std::function<const ArrowSchema&()>& schema, ShuffleOptions options)
    : work_(std::make_unique<ShuffleWork>(group, schema, std::move(options))) {}

Shuffle::~Shuffle() = default;

template <typename Call>
auto Shuffle::in_turn(Call call) const {
  const GroupHold hold(work_->group());
  return call(*work_);
}

int Shuffle::parts() const noexcept { return work_->parts(); }
Bytes Shuffle::piece() const noexcept { return work_->piece(); }
int Shuffle::owner_of(int part) const { return work_->owner_of(part); }

void Shuffle::insert(const Batch& batch, int part) {
  in_turn([&](ShuffleWork& work) { work.insert(batch, part); });
}
void Shuffle::insert(const Batch& batch, std::span<const int> keys) {
  in_turn([&](ShuffleWork& work) { work.insert(batch, keys); });
}
void Shuffle::complete(int part) {
  in_turn([&](ShuffleWork& work) { work.complete(part); });
}
void Shuffle::finish() {
  in_turn([](ShuffleWork& work) { work.finish(); });
}
void Shuffle::take_all() {
  in_turn([](ShuffleWork& work) { work.take_all(); });
}
std::optional<int> Shuffle::next() {
  return in_turn([](ShuffleWork& work) { return work.next(); });
}
std::vector<Batch> Shuffle::extract(int part) {
  return in_turn([&](ShuffleWork& work) { return work.extract(part); });
}
ShuffleCounts Shuffle::counts() const {
  return in_turn([](const ShuffleWork& work) { return work.counts(); });
}
std::string Shuffle::way_to(int rank, Bytes bytes) const {
  return in_turn([&](const ShuffleWork& work) { return work.way_to(rank, bytes); });
}

}  // namespace waywiser
