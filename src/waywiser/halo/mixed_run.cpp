#include <utility>

#include "waywiser/halo/halo_run.hpp"

namespace waywiser {
namespace {

// The hosts begin first: they wait for the stream's earlier work, and must not wait for kernels that wait for other
// ranks.
class MixedRun : public HaloRun {
 public:
  MixedRun(std::unique_ptr<HaloRun> hosts, std::unique_ptr<HaloRun> kernels)
      : hosts_(std::move(hosts)), kernels_(std::move(kernels)) {}

  void prepare() override {
    hosts_->prepare();
    kernels_->prepare();
  }
  void start(Stream* stream) override {
    hosts_->start(stream);
    kernels_->start(stream);
    count();
  }
  void finish() override {
    hosts_->finish();
    kernels_->finish();
    count();
  }
  void keep(std::shared_ptr<void> owner) override {
    hosts_->keep(owner);
    kernels_->keep(std::move(owner));
  }
  std::string explain() const override { return kernels_->explain(); }

 private:
  void count() {
    counts_ = hosts_->counts();
    counts_ += kernels_->counts();
    counts_.exchanges = hosts_->counts().exchanges;
  }

  const std::unique_ptr<HaloRun> hosts_, kernels_;
};

}  // namespace

std::unique_ptr<HaloRun> mixed_run(std::unique_ptr<HaloRun> hosts, std::unique_ptr<HaloRun> kernels) {
  return std::make_unique<MixedRun>(std::move(hosts), std::move(kernels));
}

}  // namespace waywiser
