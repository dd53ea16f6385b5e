#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "agreed_plan.hpp"
#include "nccl_types.hpp"
#include "nccl_version.hpp"
#include "tuned_communicator.hpp"

namespace waywiser_nccl {
namespace {

struct Context {
  TunedCommunicator rows;
  bool sets_channels = true;
};

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool user_chooses_channels() {
  for (const char* name : {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS",
                           "NCCL_MIN_CTAS", "NCCL_MAX_CTAS"})
    if (is_set(name)) return true;
  return false;
}

// Throws NothingToSay, for what all ranks have alike, and Refusal.
TunedCommunicator rows_for(std::size_t ranks, std::size_t nodes, LogFunction log) {
  const Plan plan = agreed_plan();
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (is_set(name)) throw NothingToSay(std::string(name) + " is set and wins");
  if (nodes != 1) throw NothingToSay("the plan is for one node, and these are " + std::to_string(nodes));
  if (ranks < 2) return {};
  const std::string version = version_of(log);
  if (version.empty()) throw NothingToSay("its version cannot be asked");
  return {*plan, ranks, version};
}

// No exception reaches NCCL.
Result init(void** context, std::size_t ranks, std::size_t nodes, LogFunction log) noexcept {
  try {
    auto made = std::make_unique<Context>();
    made->sets_channels = !user_chooses_channels();
    try {
      made->rows = rows_for(ranks, nodes, log);
    } catch (const NothingToSay& why) {
      say(std::string("it decides itself: ") + why.what());
    }
    *context = made.release();
    return success;
  } catch (const std::exception& error) {
    say(std::string("this rank does not start: ") + error.what());
    return invalid_usage;
  }
}

Result init_v4(std::size_t ranks, std::size_t nodes, LogFunction log, void** context) {
  return init(context, ranks, nodes, log);
}

Result init_v5(void** context, std::uint64_t, std::size_t ranks, std::size_t nodes, LogFunction log, void*, void*) {
  return init(context, ranks, nodes, log);
}

// Every call from here on succeeds: an error would fail the collective.
Result get_coll_info(void* context, int collective, std::size_t bytes, int, float** costs, int algorithms,
                     int protocols, int, int* channels) {
  const Context& mine = *static_cast<const Context*>(context);
  const Way* way = mine.rows.find(collective, bytes);
  if (way == nullptr || way->algorithm >= algorithms || way->protocol >= protocols) return success;
  // NCCL hands over the first row of a table in one piece.
  float& cost = reinterpret_cast<float*>(costs)[way->algorithm * protocols + way->protocol];
  if (cost < 0) return success;  // it cannot run here
  cost = 0;
  if (way->channels > 0 && mine.sets_channels) *channels = way->channels;
  return success;
}

Result get_chunk_size(void* context, int collective, std::size_t bytes, int algorithm, int protocol, int,
                      std::size_t* chunk) {
  const Way* way = static_cast<const Context*>(context)->rows.find(collective, bytes);
  if (way != nullptr && way->chunk > 0 && way->algorithm == algorithm && way->protocol == protocol) *chunk = way->chunk;
  return success;
}

Result finalize(void* context) {
  delete static_cast<Context*>(context);
  return success;
}

constexpr const char* name = "waywiser";

}  // namespace
}  // namespace waywiser_nccl

using namespace waywiser_nccl;

// NCCL takes the newest that it knows.
extern "C" {
[[gnu::visibility("default")]] extern const TunerV4 ncclTunerPlugin_v4{name, init_v4, get_coll_info, finalize};
[[gnu::visibility("default")]] extern const TunerV5 ncclTunerPlugin_v5{name, init_v5, get_coll_info, finalize};
[[gnu::visibility("default")]] extern const TunerV6 ncclTunerPlugin_v6{name, init_v5, get_coll_info, finalize,
                                                                       get_chunk_size};
[[gnu::visibility("default")]] extern const TunerV6 ncclTunerPlugin_v7{name, init_v5, get_coll_info, finalize,
                                                                       get_chunk_size};
}
