#include "waywiser/comm/message/on_failure.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {

OnFailure parse_on_failure(const std::string& text) {
  if (text == "trap") return OnFailure::trap;
  if (text == "raise") return OnFailure::raise;
  if (text == "abort") return OnFailure::abort;
  throw Error(ErrorKind::invalid_input, "on_failure is 'trap', 'raise' or 'abort', not " + quoted(text, 40));
}

}  // namespace waywiser
