#include "waywiser/comm/bootstrap/rank_tree.hpp"

#include <charconv>
#include <string>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int most_branches = 1024;

}  // namespace

int branches_of_tree() {
  const auto text = environment("WAYWISER_BRANCHES");
  if (!text) return usual_branches;
  int branches = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), branches);
  if (problem == std::errc() && end == text->data() + text->size() && branches >= 1 && branches <= most_branches)
    return branches;
  throw Error(ErrorKind::invalid_input, "WAYWISER_BRANCHES=" + quoted(*text, 40) + " must be a number from 1 to " +
                                            std::to_string(most_branches));
}

}  // namespace waywiser
