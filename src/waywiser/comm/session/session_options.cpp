#include "waywiser/comm/session/session_options.hpp"

#include <charconv>
#include <string>

#include "waywiser/base/crypto.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/network/encryption.hpp"
#include "waywiser/comm/session/progress_thread.hpp"
#include "waywiser/comm/shared_memory/cores.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

// The plan of WAYWISER_PLAN, if set. Throws invalid_input.
std::shared_ptr<const Chooser> plan_of_environment() {
  const auto file = environment("WAYWISER_PLAN");
  if (!file || file->empty()) return {};
  return std::make_shared<const Chooser>(plan_from_json(read_json(*file), *file));
}

bool wants_kernels_on_shared_gpu() {
  const std::string text = environment("WAYWISER_SHARED_GPU").value_or("host");
  if (text == "kernels" || text == "host") return text == "kernels";
  throw Error(ErrorKind::invalid_input, "WAYWISER_SHARED_GPU=" + quoted(text, 40) + " must be host or kernels");
}

// Throws invalid_input with `must`.
std::optional<int> number_of_environment(const char* name, const char* must) {
  const auto text = environment(name);
  if (!text || text->empty()) return {};
  int number = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (problem != std::errc() || end != text->data() + text->size())
    throw Error(ErrorKind::invalid_input, std::string(name) + "=" + quoted(*text, 40) + " must be " + must);
  return number;
}

void check_ctas(int most) {
  if (most >= 0) return;
  throw Error(ErrorKind::invalid_input, "max_ctas is " + std::to_string(most) + ": a number of blocks, or 0: no limit");
}

bool wants_progress_thread() {
  const std::string text = environment("WAYWISER_PROGRESS_THREAD").value_or("auto");
  if (text == "on" || text == "auto") return text == "on";
  throw Error(ErrorKind::invalid_input, "WAYWISER_PROGRESS_THREAD=" + quoted(text, 40) + " must be on or auto");
}

}  // namespace

JoinOptions with_environment(JoinOptions options) {
  if (!options.launch) options.launch = read_launch();
  if (options.launch->machine.empty()) options.launch->machine = environment("WAYWISER_MACHINE").value_or("");
  if (!options.chooser) options.chooser = plan_of_environment();
  // Without libcrypto the kernel still authenticates ranks of one machine.
  if (is_within_a_machine(*options.launch) && options.launch->root && !why_no_crypto().empty())
    options.launch->root.reset();
  if (!options.on_failure) options.on_failure = parse_on_failure(environment("WAYWISER_ON_FAILURE").value_or("trap"));
  if (!options.encrypt) options.encrypt = switched_on("WAYWISER_ENCRYPT");
  if (!options.kernels_on_shared_gpu) options.kernels_on_shared_gpu = wants_kernels_on_shared_gpu();
  if (!options.progress_thread) options.progress_thread = wants_progress_thread();
  if (!options.progress_core)
    options.progress_core = number_of_environment("WAYWISER_PROGRESS_CORE", "the number of a core");
  if (!options.max_ctas)
    options.max_ctas = number_of_environment("WAYWISER_MAX_CTAS", "a number of blocks").value_or(0);
  check_ctas(*options.max_ctas);
  for (const char* asked_later : {"WAYWISER_NVTX", "WAYWISER_TRUST_NETWORK"})
    static_cast<void>(switched_on(asked_later));
  if (options.progress_core) check_core(*options.progress_core);
  return options;
}

Seconds timeout_of(const JoinOptions& options) {
  return options.timeout ? checked_timeout(*options.timeout, "the timeout") : usual_timeout();
}

}  // namespace waywiser
