#include <algorithm>
#include <optional>
#include <utility>

#include "waywiser/group/group.hpp"
#include "waywiser/halo/halo_run.hpp"

namespace waywiser {
namespace {

class ScheduledRun : public HaloRun {
 public:
  ScheduledRun(Group& group, Schedule schedule, std::vector<Elements> arrays)
      : group_(group), schedule_(std::move(schedule)), arrays_(std::move(arrays)), each_(schedule_) {}

  void prepare() override { prepared_.emplace(Prepared::of_schedule(group_, schedule_, arrays_)); }

  void start(Stream* stream) override {
    stream != nullptr ? prepared_->start(*stream) : prepared_->start();
    waits_ = stream == nullptr;
    ++counts_.exchanges;
    counts_.messages += each_.messages;
    counts_.message_bytes += each_.message_bytes;
  }
  void finish() override {
    if (std::exchange(waits_, false)) prepared_->wait();
  }
  void keep(std::shared_ptr<void> owner) override { prepared_->keep(std::move(owner)); }
  std::string explain() const override {
    const bool on_gpu = std::ranges::any_of(arrays_, [](const Elements& each) { return each.region.place.is_gpu(); });
    return on_gpu && prepared_ ? prepared_->explain() : "";
  }

 private:
  Group& group_;
  const Schedule schedule_;
  const std::vector<Elements> arrays_;
  const ScheduleCounts each_;  // of one start
  std::optional<Prepared> prepared_;
  bool waits_ = false;
};

}  // namespace

std::unique_ptr<HaloRun> scheduled_run(Group& group, Schedule schedule, std::vector<Elements> arrays) {
  return std::make_unique<ScheduledRun>(group, std::move(schedule), std::move(arrays));
}

}  // namespace waywiser
