#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/meter.hpp"
#include "waywiser/measure/pair_side.hpp"
#include "waywiser/measure/peer_process.hpp"
#include "waywiser/measure/platform_choice.hpp"
#include "waywiser/topology/network_side.hpp"

namespace waywiser {

// Measures paths with processes == 2: this process holds the source, a peer process the destination. A peer that
// failed or died is replaced at the next call. Used by one thread at a time.
class TwoProcessMeter : public Meter {
 public:
  struct Both {
    PairResult mine, theirs;
  };
  // Others that are measured at the same time.
  struct Company {
    int pairs;  // this one included: each may need that many times as long
    Release release;
  };
  using LimitOf = std::function<Limit(const Path&, Operation)>;
  // `platform` must be what `choice` says. `patience`: how long a step may take beyond the time its bytes need.
  TwoProcessMeter(Platform& platform, PlatformChoice choice, std::filesystem::path peer_program, LimitOf limit = {},
                  Seconds patience = 20);
  // Between two machines: `connect` gives a new control line to the other one each time.
  using Connect = std::function<PeerSocket()>;
  TwoProcessMeter(Platform& platform, PlatformChoice choice, Connect connect, Seconds patience = 20);
  ~TwoProcessMeter() override;

  bool simulated() const override { return choice_.backend == "virtual_gpu"; }
  std::optional<std::string> why_unavailable(const Path& path) override;
  Bytes largest(const Path& path) const override;
  Limit limit(const Path& path, Operation operation) const override;
  std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) override;
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override;
  Seconds first_use(const Path& path) override;

  // The machine at the other end. Throws what connecting throws.
  NetworkSide other_side();

  // The slow steps before a run: they start the peer, if there is none, and open the path and its memory.
  void start();
  void prepare(const Path& path, const PairRun& run);
  // Any operation, `loaded` too: then this is one of the pairs.
  Both run(const Path& path, PairRun run, const Company& company = {1, {}});
  // Buffers of earlier paths stay while all together are no larger than this.
  void keep_at_most(Bytes bytes) noexcept { most_cached_ = bytes; }
  // The peer of the moment; -1 when there is none.
  pid_t peer() const noexcept;

 private:
  struct Session;

  bool between_machines() const { return static_cast<bool>(connect_); }
  std::unique_ptr<Session> open_session() const;
  void begin();  // a peer to work with; only between cases, for a new one has nothing open
  Json command(const Json& body, Seconds seconds, const Release& release = {});
  void open(const Path& path);
  void make_room(const Path& path, Bytes capacity);
  Bytes free_memory(const Path& path) const;
  [[noreturn]] void fail(const Error& problem, const std::string& doing);
  template <typename Work>
  auto attempt(const std::string& doing, Work work);

  Platform& platform_;
  PlatformChoice choice_;
  std::filesystem::path program_;
  Connect connect_;
  LimitOf limit_;
  Seconds patience_;
  Bytes most_cached_ = 2048ull << 20;
  std::uint64_t seed_ = 1;
  std::unique_ptr<Session> session_;
};

}  // namespace waywiser
