#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/navier_stokes/mesh/local_mesh.hpp"

namespace flow {

// Values of the owned cells under a name.
struct CellField {
  std::string name;
  int components = 1;
  std::vector<double> values;
};

// A time series for ParaView: in the folder, `flow.pvd` lists `flow_STEP.pvtu`, which lists a file of each rank with
// its cells, their fields, rank and number in the whole mesh.
class VtuSeries {
 public:
  // With `continued`, frames of earlier times that the folder's list has are kept. Throws io.
  VtuSeries(std::filesystem::path folder, int rank, int ranks, const LocalMesh& mesh, bool continued, double time);

  // Each rank calls it; the lists name the files of ranks that may not have written yet. Throws io.
  void add(std::int64_t step, double time, const std::vector<CellField>& fields);

 private:
  std::string piece(std::int64_t step, int rank) const;

  std::filesystem::path folder_;
  int rank_, ranks_;
  const LocalMesh& mesh_;
  std::vector<std::string> frames_;  // lines of flow.pvd
};

}  // namespace flow
