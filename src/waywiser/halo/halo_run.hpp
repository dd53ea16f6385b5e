#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/halo/halo_schedule.hpp"

namespace waywiser {

class Group;
class Stream;

// One variant of an exchange, on fixed arrays.
class HaloRun {
 public:
  HaloRun() = default;
  HaloRun(const HaloRun&) = delete;
  HaloRun& operator=(const HaloRun&) = delete;
  virtual ~HaloRun() = default;

  // Collective; after the constructors of all ranks. Throws like Prepared::of_schedule.
  virtual void prepare() = 0;
  // nullptr: no stream uses the arrays. Throws unavailable if the stream is being captured and no graph can hold it.
  virtual void start(Stream* stream) = 0;
  virtual void finish() = 0;
  // The run keeps the owner of the arrays while an exchange is under way.
  virtual void keep(std::shared_ptr<void> owner) = 0;
  // How the kernels carry the messages, for people; empty: no kernel does.
  virtual std::string explain() const { return {}; }

  const HaloCounts& counts() const noexcept { return counts_; }

 protected:
  HaloCounts counts_;
};

// The schedule runs on the arrays themselves, by the hosts or by kernels.
std::unique_ptr<HaloRun> scheduled_run(Group& group, Schedule schedule, std::vector<Elements> arrays);
// The arrays are on a GPU; messages of the hosts carry what passes through host memory: not for direct variants. Throws
// the platform's errors.
std::unique_ptr<HaloRun> staged_run(Group& group, HaloVariant variant, const HaloBoundary& boundary,
                                    std::vector<Elements> arrays);
// The same for the variant gpu_aware.
std::unique_ptr<HaloRun> gpu_aware_run(Group& group, const HaloBoundary& boundary, std::vector<Elements> arrays);

// Some parts by messages of the hosts, the others by kernels, both under way at once.
std::unique_ptr<HaloRun> mixed_run(std::unique_ptr<HaloRun> hosts, std::unique_ptr<HaloRun> kernels);

}  // namespace waywiser
