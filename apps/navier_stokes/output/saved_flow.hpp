#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// One rank's part of a state, with the numbers of its cells and faces in the whole mesh, and how many ranks there were.
struct SavedFlow {
  std::int64_t ranks = 0;
  std::vector<std::int64_t> cells, faces;
  FlowValues values;

  std::string packed(const std::string& key) const;
  // `file` is for messages. Throws invalid_input: another key; corrupt.
  static SavedFlow unpacked(std::string_view text, const std::string& key, const std::string& file);
};

// Where this run has the cells and faces of the whole mesh.
class FlowPlaces {
 public:
  FlowPlaces(const std::vector<std::int64_t>& cells, const std::vector<std::int64_t>& faces);

  // The values of `from` that are this run's.
  void take(const SavedFlow& from, FlowValues& to);
  // Whether all cells and faces have got values.
  bool full() const { return cells_.missing == 0 && faces_.missing == 0; }

 private:
  struct Places {
    std::vector<std::pair<std::int64_t, std::size_t>> sorted;  // number, place
    std::vector<char> filled;
    std::size_t missing = 0;

    explicit Places(const std::vector<std::int64_t>& numbers);
    // For each of these, its place here; npos: none. Counts them as filled.
    std::vector<std::size_t> of(const std::vector<std::int64_t>& numbers);
  };

  Places cells_, faces_;
};

}  // namespace flow
