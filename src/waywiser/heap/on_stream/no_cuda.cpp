#include "waywiser/heap/on_stream/stream_call.hpp"
#include "waywiser/heap/on_stream/stream_team_call.hpp"

namespace waywiser::one_sided {

std::function<void(void*)> cuda_launcher(const StreamCall&) { return {}; }
std::function<void(void*)> cuda_launcher(const StreamTeamCall&) { return {}; }

}  // namespace waywiser::one_sided
