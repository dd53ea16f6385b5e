#include "waywiser/table/refused_shuffle.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/table/shuffle_options.hpp"

namespace waywiser {
namespace {

constexpr int most_parts = 1 << 20;
constexpr Bytes least_piece = 1 << 10, largest_piece = Bytes{1} << 30;

}  // namespace

void refuse_shuffle(const std::string& why) { throw Error(ErrorKind::invalid_input, "a shuffle of tables: " + why); }

void check_options(const ShuffleOptions& options) {
  if (options.parts < 1 || options.parts > most_parts)
    refuse_shuffle(std::to_string(options.parts) + " parts are not in 1 to " + std::to_string(most_parts));
  if (options.piece < least_piece || options.piece > largest_piece)
    refuse_shuffle("pieces of " + std::to_string(options.piece) + " bytes are not in 1 KiB to 1 GiB");
  if (options.budget / 4 < options.piece)
    refuse_shuffle("a budget of " + std::to_string(options.budget) + " bytes is less than four pieces of " +
                   std::to_string(options.piece));
  if ((options.memory > 0) != !options.spill.empty())
    refuse_shuffle("a limit of memory and a folder for what is above it come together");
  if (options.memory > 0 && options.place.is_gpu()) refuse_shuffle("what lies on GPUs does not go to files");
}

}  // namespace waywiser
