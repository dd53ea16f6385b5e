#include "waywiser/comm/bootstrap/rank_status.hpp"

#include <unistd.h>

#include "waywiser/base/json.hpp"

namespace waywiser {

std::string rank_status(const Introduction& rank, const std::string& job, const Call& call, Seconds waited,
                        const std::string& progress_thread, const SentByMechanism& sent) {
  const Json status{{"job", job},
                    {"rank", rank.rank},
                    {"size", rank.size},
                    {"host", rank.host},
                    {"process", rank.process},
                    {"parent", ::getppid()},
                    {"call", call.kind == CallKind::none ? Json() : Json(text(call))},
                    {"waited", waited},
                    {"progress_thread", progress_thread.empty() ? Json() : Json(progress_thread)},
                    {"sent", sent}};
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace waywiser
