#include "waywiser/transport/bar_copy/bar_copy.hpp"

#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/bar_copy/gdrapi.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_mappings = 16;  // the BAR is small on some GPUs

Place host_of(const Path& path) { return path.source.is_gpu() ? path.destination : path.source; }

std::optional<std::string> why_no_bar_copy(const Path& path, const TransportContext& context) {
  if (path.source.is_gpu() == path.destination.is_gpu()) return "it serves copies between host memory and a GPU only";
  if (path.processes != 1) return "memory of another process cannot be pinned for it";
  if (context.platform.gpu_count() == 0) return "there is no GPU";
  if (context.platform.backend() != "cuda") return "only memory of a CUDA device can be mapped";
  return GdrApi().why_not();
}

class BarCopy : public Transport {
 public:
  explicit BarCopy(const Path& path) : host_(host_of(path)) {
    if (api_.why_not()) throw Error(ErrorKind::unavailable, "bar_copy: " + *api_.why_not());
    session_ = api_.open();
    if (session_ == nullptr) throw Error(ErrorKind::device, "bar_copy: gdr_open failed: " + last_system_error());
  }
  BarCopy(const BarCopy&) = delete;
  BarCopy& operator=(const BarCopy&) = delete;
  ~BarCopy() override {
    mappings_.clear();
    api_.close(session_);
  }

  void put(Region destination, ConstRegion source, Stream& stream) override {
    check_put(destination, source);
    check(stream);
    if (destination.bytes == 0) return;
    if (destination.place.is_gpu())
      mapping(destination).write(destination, source.data);
    else
      mapping(source).read(destination.data, source);
  }

  void signal(Region flag, std::uint64_t value, Stream& stream) override {
    check(stream);
    if (!flag.place.is_gpu()) return stream.write_value(flag, value);
    put(flag, {reinterpret_cast<const std::byte*>(&value), sizeof value, host_}, stream);
  }

 private:
  void check(const Stream& stream) const {
    if (stream.place().is_gpu())
      throw Error(ErrorKind::invalid_input,
                  "bar_copy: its stream must be on " + text(host_) + ", not on " + text(stream.place()));
  }

  // Pinning costs far more than a copy: mappings are kept, the oldest goes first.
  const BarMapping& mapping(ConstRegion region) {
    for (const auto& known : mappings_)
      if (known->covers(region)) return *known;
    if (mappings_.size() == most_mappings) mappings_.erase(mappings_.begin());
    mappings_.push_back(std::make_unique<BarMapping>(api_, session_, region));
    return *mappings_.back();
  }

  GdrApi api_;
  Place host_;
  void* session_ = nullptr;
  std::vector<std::unique_ptr<BarMapping>> mappings_;
};

PathSteps steps(const Path& path, Bytes) {
  PathStep step = cpu_copies({path.source}, {path.destination});
  step.what = path.source.is_gpu() ? "loads through the PCIe BAR" : "stores through the PCIe BAR";
  return {step};
}

}  // namespace

Mechanism bar_copy_mechanism() {
  return {"bar_copy",
          "The CPU reads or writes GPU memory through the PCIe BAR (GDRCopy).",
          why_no_bar_copy,
          host_of,
          [](const Path& path, const TransportContext&) -> std::unique_ptr<Transport> {
            return std::make_unique<BarCopy>(path);
          },
          steps};
}

}  // namespace waywiser
