#pragma once

#include "waywiser/measure/profile.hpp"

namespace waywiser {

// The same path for another pair of the class. A relay through one of the new ends goes through an old end instead.
Path for_pair(Path path, Place source, Place destination);

// The class of the path's pair, with equally many processes; nullptr if there is none.
const PairClass* class_of(const std::vector<PairClass>& classes, const Path& path);

// The pairs of a class that move at once in Operation::loaded, `first` at the front: all, or `most` of them, so that
// the busiest place has as few as possible.
std::vector<std::pair<Place, Place>> pairs_together(const PairClass& pair_class, std::pair<Place, Place> first,
                                                    std::size_t most);

}  // namespace waywiser
