#pragma once

#include <memory>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/activity.hpp"
#include "waywiser/device/memory.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

class Session;

// Whether a call of the hosts must stage the array through host memory.
inline bool is_staged(ConstElements data) { return data.region.place.is_gpu() && data.region.bytes != 0; }

// Host memory that replaces GPU memory for one call. Host arrays are used directly.
class Staging {
 public:
  explicit Staging(Session& session) : session_(session) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  // Copies the array to the host. Arrays that overlap on the GPU overlap on the host only if they are equal.
  ConstElements input(ConstElements elements);
  // The old contents are copied too, since the call may not write all of it.
  Elements output(Elements elements);
  // Copies the outputs back.
  void finish();

 private:
  struct Copy {
    Region on_gpu, on_host;
    Memory memory;
    bool back = false;
  };
  Region stage(Region on_gpu, bool back);
  Stream& stream(Place place);

  Session& session_;
  std::vector<Copy> copies_;
  Stream* stream_ = nullptr;
};

// An operation on host memory that copies its outputs back to a GPU when it is complete.
class StagedActivity : public Activity {
 public:
  StagedActivity(std::shared_ptr<Activity> operation, std::unique_ptr<Staging> staging)
      : operation_(std::move(operation)), staging_(std::move(staging)) {}

  bool advance() override {
    if (!operation_->advance()) return false;
    if (staging_) staging_->finish();
    staging_.reset();
    return true;
  }
  const Call& call() const override { return operation_->call(); }
  std::string progress_text() const override { return operation_->progress_text() + ", for a GPU"; }
  void abandon() noexcept override { operation_->abandon(); }

 private:
  std::shared_ptr<Activity> operation_;
  std::unique_ptr<Staging> staging_;
};

// `operation` with its staged arrays; nullptr: nothing is staged.
std::shared_ptr<Activity> staged(std::shared_ptr<Activity> operation, std::unique_ptr<Staging> staging);

}  // namespace waywiser
